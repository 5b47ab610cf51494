import ArgumentParser
import BoardFeature
import Lockstep
import LockstepClient

struct Live: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Draw the board as it changes, and move its cards about.",
    discussion: """
      The arrows, or h, j, k and l, go from card to card. Space takes the card, and puts it down; \
      the arrows move it meanwhile, at once, and nobody else can. u puts back what you have moved \
      last, and q ends.
      """)

  @Option(help: "Your name, which the others see.")
  var name: String

  @OptionGroup var daemon: DaemonAddress

  private enum Event {
    case key(Key)
    case changed
    case ended
  }

  @MainActor func run() async throws {
    let board = try await MirrorStore.connect(optimistic: Board(), daemon.options)
    let (events, continuation) = AsyncStream<Event>.makeStream()
    let changes = Task { [states = board.observe(\.self)] in
      for await _ in states { continuation.yield(.changed) }
      continuation.yield(.ended)
    }
    Screen.readKeys { continuation.yield(.key($0)) }
    let screen = Screen()
    defer {
      changes.cancel()
      screen.close()
    }
    var player = Player(name: name, board: board)
    var drawn: [String] = []
    events: for await event in events {
      switch event {
      case .key(.quit): break events
      case .key(let key): player.press(key)
      case .changed: player.follow()
      case .ended: throw ValidationError("the daemon has ended the connection")
      }
      let lines = player.lines
      if lines != drawn { screen.draw(lines) }
      drawn = lines
    }
    await board.connection.finish()
  }
}

/// Somebody who plays with the board by keys.
@MainActor struct Player {
  private let name: String
  private let board: MirrorStore<Board>
  /// The card that the keys are about.
  private var card: Card.ID?
  /// Why the last key did nothing.
  private var message: String?

  init(name: String, board: MirrorStore<Board>) {
    self.name = name
    self.board = board
  }

  /// What is to be seen.
  var lines: [String] {
    Picture(board.state, mark: card).lines + (message.map { [$0] } ?? [])
  }

  private var isHolding: Bool { card.map { board[Board.State.holders][$0] == name } ?? false }

  /// Come to terms with a new state.
  mutating func follow() {
    // At the start, and again after a restart of the daemon.
    if !board.state.hands.contains(where: { $0.entry.name == name }) {
      board.post(.hands(.enter(Hand(name: name))), .optimistic)
    }
    if card.flatMap({ board.state.place(of: $0) }) == nil {
      card = board.state.columns.lazy.compactMap(\.cards.first?.id).first
    }
  }

  mutating func press(_ key: Key) {
    message = nil
    switch key {
    case .space: take()
    case .undo: board.post(.undo(by: name), .optimistic)
    case .quit: break
    case .left, .right, .up, .down: go(key)
    }
  }

  /// Take the card, or put it down.
  private mutating func take() {
    guard let card else { return }
    let holder = board[Board.State.holders][card]
    if let holder, holder != name { return message = "\(holder) holds card \(card)" }
    let hand = Hand(name: name, card: holder == nil ? card : nil)
    board.post(.hands(.enter(hand)), .optimistic)
  }

  /// Go to another card; or move the one that is held.
  private mutating func go(_ key: Key) {
    let columns = board.state.columns
    guard let card, let place = board.state.place(of: card),
      let column = columns.index(id: place.column)
    else { return }
    let step = key == .left ? -1 : key == .right ? 1 : 0
    let row = place.row + (key == .up ? -1 : key == .down ? 1 : 0)
    guard columns.indices.contains(column + step), row >= 0 else { return }
    let goal = columns[column + step]
    if isHolding {
      board.post(.moveCard(card, column: goal.id, row: row, by: name), .optimistic)
    } else if step == 0 {
      if row < goal.cards.count { self.card = goal.cards[row].id }
    } else {
      // The next column that has cards.
      var next = column + step
      while columns.indices.contains(next), columns[next].cards.isEmpty { next += step }
      guard columns.indices.contains(next), let last = columns[next].cards.last else { return }
      let cards = columns[next].cards
      self.card = row < cards.count ? cards[row].id : last.id
    }
  }
}
