import Foundation
import Lockstep
import LockstepClient
import Testing
import TodosFeature
import Values

/// `todosd`, its client, and the stock command line.
@Suite("Todos", .enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct TodosProcessTests {
  /// A daemon whose backend is the file `titles` in the test's folder.
  private func withTodos(
    _ titles: [String]?, _ options: String...,
    body: (ServedExample, MirrorStore<Todos>) async throws -> Void
  ) async throws {
    try await withExample("todosd") { folder in
      if let titles { try write(titles, in: folder) }
      return ["--backend", folder + "/titles"] + options
    } _: { served in
      let mirror = try await MirrorStore<Todos>.connect(.init(socket: served.socket))
      try await body(served, mirror)
      await mirror.connection.finish()
    }
  }

  private func write(_ titles: [String], in folder: String) throws {
    try titles.map { $0 + "\n" }.joined()
      .write(toFile: folder + "/titles", atomically: true, encoding: .utf8)
  }

  private func titles(in folder: String) throws -> [Substring] {
    try String(contentsOfFile: folder + "/titles", encoding: .utf8).split(separator: "\n")
  }

  @Test("RED-13: todos are loaded, added and toggled, and two clients see the same")
  func flow() async throws {
    try await withTodos(["milk"]) { served, mirror in
      let watch = try served.start("todos", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("nothing to do")
      #expect(try await served.run("todos", "load").lines == ["1 [ ] milk"])
      #expect(try await served.run("todos", "add", "eggs").status == .exit(0))
      try await watch.line("1 [ ] milk, - [ ] eggs (saving)")
      try await watch.line("1 [ ] milk, 2 [ ] eggs")
      #expect(try titles(in: served.folder) == ["milk", "eggs"])
      #expect(try await served.run("todos", "toggle", "1").lines == ["1 [x] milk"])
      try await watch.line("1 [x] milk, 2 [ ] eggs")
      let listed = try await served.lockstep("ls", "/todos", "--depth", "2")
      let paths = listed.lines.compactMap { $0.firstMatch(of: #/"path":"([^"]*)"/#)?.1 }
      #expect(
        paths == [
          "/todos/1", "/todos/1/id", "/todos/1/title", "/todos/1/isCompleted", "/todos/2",
          "/todos/2/id", "/todos/2/title", "/todos/2/isCompleted",
        ])
      #expect(listed.lines.first?.contains(#""kind":"struct""#) == true)
      try await eventually("the mirror has both") { mirror.todos.count == 2 }
      try await eventually("the mirror shows it") {
        mirror.todos.count == 2 && mirror.drafts.isEmpty
      }
    }
  }

  @Test("RED-13: toggling an absent todo is logged, and changes nothing")
  func unknown() async throws {
    try await withTodos(["milk"]) { served, mirror in
      #expect(try await served.run("todos", "load").status == .exit(0))
      let before = mirror.subscription.position
      let toggle = try await served.run("todos", "toggle", "9")
      #expect(toggle.status == .exit(1) && toggle.lines == ["Error: there is no todo 9"])
      #expect(mirror.subscription.position == before)
      let last = try #require(try await served.log().last)
      #expect(last["action"] as? String == "toggleTodo")
      #expect(last["outcome"] as? String == "unchanged")
    }
  }

  @Test func `a killed reader disappears at once, long before its grace is over`() async throws {
    try await withTodos(["milk"]) { served, mirror in
      let ann = try served.start("todos", "watch", "--name", "Ann")
      let bob = try served.start("todos", "watch", "--name", "Bob")
      defer { bob.signal(SIGKILL) }
      try await eventually("both are seen") { mirror.readers.sessionCount == 2 }
      #expect(try await served.run("todos", "readers").lines == ["Ann", "Bob"])
      ann.signal(SIGKILL)
      try await eventually("one is gone") { mirror.readers.map(\.entry) == ["Bob"] }
    }
  }

  @Test("RDX-02: a todo is shown as unsaved while the backend works")
  func unsaved() async throws {
    try await withTodos([], "--delay-ms", "3600000") { served, mirror in
      try await mirror.send(.addTodo("milk"))
      try await eventually("the mirror shows it") { mirror.drafts.values.map(\.title) == ["milk"] }
      #expect(mirror.todos.isEmpty)
      let list = try await served.run("todos", "list")
      #expect(list.lines == ["- [ ] milk (saving)"])
    }
  }

  @Test("2.1.9: discarding a draft while it is being saved cancels the saving")
  func discard() async throws {
    try await withTodos([], "--delay-ms", "3600000") { served, mirror in
      try await mirror.send(.addTodo("milk"))
      try await mirror.send(.addTodo("eggs"))
      try await eventually("both are being saved") {
        try await served.effects() == ["save", "save"]
      }
      #expect(try await served.run("todos", "discard", "milk").status == .exit(0))
      #expect(try await served.effects() == ["save"])
      try await eventually("the mirror shows it") { mirror.drafts.values.map(\.title) == ["eggs"] }
      let outcomes = try await served.log().compactMap { $0["outcome"] as? String }
      #expect(outcomes == ["changed", "unchanged", "changed", "unchanged", "changed"])
      #expect(try titles(in: served.folder) == [])
    }
  }

  @Test("RED-20: a failed backend gives its reason as a value, and can be retried")
  func failing() async throws {
    try await withTodos(nil) { served, mirror in
      let reason = "cannot read \(served.folder)/titles"
      let load = try await served.run("todos", "load")
      #expect(load.status == .exit(1) && load.lines == ["Error: \(reason)"])
      try await eventually("the error arrives") { mirror.error == .unavailable(reason: reason) }
      #expect(try await served.run("todos", "add", "milk").status == .exit(0))
      try await eventually("the draft has failed") {
        mirror.drafts.values.map(\.failure) == [.unavailable(reason: reason)]
      }
      #expect(
        try await served.run("todos", "list").lines == ["- [ ] milk (not saved: \(reason))"])
      try write([], in: served.folder)
      #expect(try await served.run("todos", "retry", "milk").status == .exit(0))
      try await eventually("it is saved") { mirror.todos[1]?.title == "milk" }
      try await eventually("the mirror shows it") { mirror.drafts.isEmpty }
    }
  }

  @Test("RDX-02: pages are loaded one by one, while there are more")
  func pagination() async throws {
    try await withTodos((1...5).map { "todo \($0)" }, "--page-size", "2") { served, mirror in
      #expect(try await served.run("todos", "load").lines.count == 2)
      try await eventually("the mirror shows it") { mirror.hasMore }
      #expect(try await served.run("todos", "more").lines.count == 4)
      #expect(try await served.run("todos", "more").lines.count == 5)
      try await eventually("the mirror shows it") { !mirror.hasMore && mirror.page == 2 }
      let more = try await served.run("todos", "more")
      #expect(more.status == .exit(1) && more.lines == ["Error: there are no more"])
    }
  }

  @Test("RDX-02: the selection of one client is shown by all")
  func selection() async throws {
    try await withTodos(["milk", "eggs"]) { served, mirror in
      #expect(try await served.run("todos", "load").status == .exit(0))
      let watch = try served.start("todos", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("1 [ ] milk, 2 [ ] eggs")
      #expect(try await served.run("todos", "select", "2").status == .exit(0))
      try await watch.line("1 [ ] milk, 2 [ ] eggs *")
      try await eventually("the mirror shows it") { mirror.selection == 2 }
    }
  }
}
