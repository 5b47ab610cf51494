import ArgumentParser
import Glibc
import Lockstep
import LockstepClient
import TodosFeature

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Show the todos, a line each.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      for line in todos.state.lines { print(line) }
    }
  }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the todos in one line, and each change of them, until interrupted.")

  @Option(help: "Tell the others who is reading, for as long as this runs.")
  var name: String?

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      for await state in todos.changes {
        // At the start, and again after a restart of the daemon.
        if let name, !state.names.contains(name) {
          try await todos.send(.readers(.enter(name)))
        }
        print(state.summary)
        // Also when standard output is a pipe.
        fflush(nil)
      }
    }
  }
}

struct Readers: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Show who is reading, a line each.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      for name in todos.state.names { print(name) }
    }
  }
}

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Load the first page from the backend.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      try await todos.send(.loadTodos)
      try await todos.showWhenLoaded()
    }
  }
}

struct More: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Load the next page.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      guard todos.hasMore else { throw Failure("there are no more") }
      try await todos.send(.loadNextPage)
      try await todos.showWhenLoaded()
    }
  }
}

extension MirrorStore<Todos> {
  fileprivate func showWhenLoaded() async throws {
    for await isLoading in observe(\.isLoading) where !isLoading { break }
    if let error = self.error { throw Failure("\(error)") }
    for line in state.lines { print(line) }
  }
}

extension Todos.State {
  /// The todos by number, then the unsaved drafts.
  fileprivate var lines: [String] {
    todos.values.sorted { $0.id < $1.id }.map(line) + drafts.values.map(\.line).sorted()
  }

  /// The names of the readers.
  fileprivate var names: [String] { readers.map(\.entry).sorted() }

  private func line(_ todo: Todo) -> String { todo.line + (todo.id == selection ? " *" : "") }

  fileprivate var summary: String {
    let list = lines.isEmpty ? "nothing to do" : lines.joined(separator: ", ")
    if let error { return "\(list) (\(error))" }
    return list + (isLoading ? " (loading)" : hasMore ? " (and more)" : "")
  }
}

extension Todo {
  var line: String { "\(id) [\(isCompleted ? "x" : " ")] \(title)" }
}

extension Draft {
  fileprivate var line: String {
    "- [ ] \(title) (\(failure.map { "not saved: \($0)" } ?? "saving"))"
  }
}
