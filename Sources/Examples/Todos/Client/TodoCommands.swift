import ArgumentParser
import Lockstep
import LockstepClient
import TodosFeature

struct Add: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Add a todo; it is not saved before the backend has it.")

  @Argument(help: "What is to be done.")
  var title: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { try await $0.send(.addTodo(title)) }
  }
}

struct Retry: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Save a todo that could not be saved.")

  @Argument(help: "What is to be done.")
  var title: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      try await todos.send(.drafts(id: todos.draft(title), action: .save))
    }
  }
}

struct Discard: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Forget a todo that is not saved; if it is being saved, that ends.")

  @Argument(help: "What was to be done.")
  var title: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      try await todos.send(.discardDraft(todos.draft(title)))
    }
  }
}

struct Toggle: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Tick a todo off, or on again.")

  @Argument(help: "The number of the todo.")
  var id: Todo.ID

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      try await todos.send(.toggleTodo(id))
      print(try todos.todo(id).line)
    }
  }
}

struct Select: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Point at a todo, for everybody.")

  @Argument(help: "The number of the todo.")
  var id: Todo.ID

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { todos in
      try await todos.send(.selectTodo(id))
      print(try todos.todo(id).line)
    }
  }
}

extension MirrorStore<Todos> {
  fileprivate func todo(_ id: Todo.ID) throws -> Todo {
    guard let todo = self.todos[id] else { throw Failure("there is no todo \(id)") }
    return todo
  }

  fileprivate func draft(_ title: String) throws -> Draft.ID {
    guard let draft = self.drafts.values.first(where: { $0.title == title }) else {
      throw Failure("there is no \"\(title)\" that is not saved")
    }
    return draft.id
  }
}
