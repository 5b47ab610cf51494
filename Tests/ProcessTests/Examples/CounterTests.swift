import CounterFeature
import Foundation
import LockstepClient
import Testing

/// `counterd`, its client, and the stock command line.
@Suite("Counter", .enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct CounterProcessTests {
  /// A daemon whose facts come from a script; `$1` is the number, `$folder` the test's folder.
  private func withFacts(
    _ script: String, _ body: (ServedExample, MirrorStore<Counter>) async throws -> Void
  ) async throws {
    try await withExample("counterd") { folder in
      let path = folder + "/facts"
      let text = "#!/bin/sh\nfolder='\(folder)'\n\(script)\n"
      // A file that a forked child holds open for writing cannot be executed.
      try ChildProcess.spawning.withLock {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
      return ["--facts-command", path]
    } _: { served in
      let mirror = try await MirrorStore<Counter>.connect(.init(socket: served.socket))
      try await body(served, mirror)
      await mirror.connection.finish()
    }
  }

  /// Waits for the file `go`, then prints a fact.
  private static let waiting =
    #"while [ ! -e "$folder/go" ]; do sleep 0.01; done; echo "$1 is the number""#

  private func go(_ served: ServedExample) throws {
    try Data().write(to: URL(fileURLWithPath: served.folder + "/go"))
  }

  @Test("RED-15: one client sees what another does")
  func twoClients() async throws {
    try await withExample("counterd") { served in
      let watch = try served.start("counter", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("0")
      #expect(try await served.run("counter", "increment").lines == ["1"])
      #expect(try await served.run("counter", "increment").lines == ["2"])
      #expect(try await served.run("counter", "decrement").lines == ["1"])
      #expect(try await served.run("counter", "fact").lines.first?.hasPrefix("1 is the") == true)
      try await watch.line("1, a fact is loading")
      try await watch.line("1, 1 is the number that divides every integer.")
    }
  }

  @Test("RED-12: the fact is about 42, although the number became 43 meanwhile")
  func captureList() async throws {
    try await withFacts(Self.waiting) { served, mirror in
      for _ in 1...42 { try await mirror.send(.increment) }
      let fact = try served.start("counter", "fact")
      defer { fact.signal(SIGKILL) }
      try await eventually("the fact is loading") { mirror.isLoading }
      #expect(try await served.run("counter", "increment").lines == ["43"])
      #expect(mirror.isLoading)
      try go(served)
      try await fact.line("42 is the number")
      #expect(try await fact.end() == .exit(0))
      try await eventually("the counter shows 43") { mirror.state.count == 43 }
    }
  }

  @Test("RED-10: a command that fails becomes a sentence")
  func failure() async throws {
    try await withFacts("exit 1") { served, mirror in
      let fact = try await served.run("counter", "fact")
      #expect(fact.lines == ["팩트를 불러오는데 실패했습니다"])
      try await eventually("the mirror shows it") { mirror.numberFact == "팩트를 불러오는데 실패했습니다" }
    }
  }

  @Test("RED-05: an observer of the count is not called for the spinner")
  func watchCount() async throws {
    try await withFacts("echo so") { served, mirror in
      let watch = try served.start("counter", "watch", "count")
      defer { watch.signal(SIGKILL) }
      try await watch.line("0")
      for number in 1...3 {
        #expect(try await served.run("counter", "fact").lines == ["so"])
        #expect(try await served.run("counter", "increment").status == .exit(0))
        try await watch.line("\(number)")
      }
      #expect(watch.output == ["0", "1", "2", "3"])
    }
  }

  @Test("RED-10: a fact that is cancelled leaves the table of effects, and never arrives")
  func cancel() async throws {
    try await withFacts(Self.waiting) { served, mirror in
      try await mirror.send(.numberFactButtonTapped)
      #expect(try await served.effects() == ["fact"])
      #expect(try await served.run("counter", "cancel").status == .exit(0))
      try await eventually("the mirror shows it") { !mirror.isLoading }
      #expect(try await served.effects() == [])
      try go(served)
      // A later fact answers a later question.
      #expect(try await served.run("counter", "increment").status == .exit(0))
      #expect(try await served.run("counter", "fact").lines == ["1 is the number"])
      let names = try await served.log().compactMap { $0["action"] as? String }
      #expect(names.filter { $0 == "numberFactResponse" }.count == 1)
    }
  }

  @Test("RED-10: a second tap replaces the first")
  func secondTap() async throws {
    try await withFacts(Self.waiting) { served, mirror in
      #expect(try await served.lockstep("send", "numberFactButtonTapped").status == .exit(0))
      #expect(try await served.lockstep("send", "increment").status == .exit(0))
      #expect(try await served.lockstep("send", "numberFactButtonTapped").status == .exit(0))
      #expect(try await served.effects() == ["fact"])
      try go(served)
      try await eventually("the fact arrives") { mirror.numberFact != nil }
      try await eventually("the mirror shows it") { mirror.numberFact == "1 is the number" }
    }
  }

  @Test("RED-11: the fact command is disabled while a fact is loading, and says so")
  func disabled() async throws {
    try await withFacts(Self.waiting) { served, mirror in
      try await mirror.send(.numberFactButtonTapped)
      let second = try await served.run("counter", "fact")
      #expect(second.status == .exit(1))
      #expect(second.lines == ["Error: a fact is loading already"])
      let names = try await served.log().compactMap { $0["action"] as? String }
      #expect(names == ["numberFactButtonTapped"])
    }
  }

  @Test("RED-15: the state is visible before the effect runs, and the effect names its cause")
  func causes() async throws {
    try await withFacts("echo so") { served, mirror in
      #expect(try await served.run("counter", "fact").lines == ["so"])
      let log = try await served.log()
      #expect(log.map { $0["revision"] as? Int } == [1, 2])
      #expect(log.last?["parent"] as? Int == log.first?["sequence"] as? Int)
      let why = try await served.lockstep("why", "2")
      #expect(why.lines.count == 2)
    }
  }
}
