import ArgumentParser
import BoardFeature
import LockstepClient

/// Shows the board of `boardd`, and moves its cards.
@main struct BoardClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "board", abstract: "See and change the board of boardd.",
    subcommands: [
      Show.self, Live.self, Add.self, AddColumn.self, MoveCard.self, Undo.self, Remove.self,
    ])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  var options: Connection.Options { Connection.Options(socket: socket, label: "board") }

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<Board>) async throws -> Void) async throws {
    let board = try await MirrorStore<Board>.connect(options)
    do { try await body(board) } catch {
      await board.connection.finish()
      throw error
    }
    await board.connection.finish()
  }

  /// Send an action, and show the board.
  func send(_ action: Board.Action) async throws {
    try await with { board in
      try await board.send(action)
      Picture(board.state).print()
    }
  }
}

struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Show the board.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { Picture($0.state).print() }
  }
}

struct Add: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Add a card at the end of a column.")

  @Argument(help: "What is to be done.")
  var title: String

  @Option(help: "The column.")
  var to = "todo"

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.addCard(title, column: to)) }
}

struct AddColumn: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Add a column at the right.")

  @Argument(help: "The name of the column.")
  var name: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.addColumn(name)) }
}

struct MoveCard: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Move a card, unless somebody else holds it.")

  @Argument(help: "The number of the card.")
  var card: Card.ID

  @Argument(help: "The column to move it into.")
  var column: String

  @Option(help: "The row to move it to, 0 for the top. The end, if it is not said.")
  var row: Int?

  @Option(help: "Who moves it, for `board undo`.")
  var name = "somebody"

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    if let row {
      try await daemon.send(.moveCard(card, column: column, row: row, by: name))
    } else {
      try await daemon.send(.moveCard(card, column: column, by: name))
    }
  }
}

struct Undo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Put back the card that somebody has moved last.")

  @Option(help: "Who has moved it.")
  var name = "somebody"

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.undo(by: name)) }
}

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Take a card off the board, unless somebody else holds it.")

  @Argument(help: "The number of the card.")
  var card: Card.ID

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.removeCard(card)) }
}
