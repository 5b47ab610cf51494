import ArgumentParser
import LockstepClient
import TodosFeature

/// Shows the todos of `todosd`, and changes them.
@main struct TodosClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "todos", abstract: "See and change the todos of todosd.",
    subcommands: [
      List.self, Watch.self, Load.self, More.self, Add.self, Retry.self, Discard.self, Toggle.self,
      Select.self, Readers.self,
    ])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<Todos>) async throws -> Void) async throws {
    let todos = try await MirrorStore<Todos>.connect(.init(socket: socket, label: "todos"))
    do { try await body(todos) } catch {
      await todos.connection.finish()
      throw error
    }
    await todos.connection.finish()
  }
}

/// The message for a command without effect.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
