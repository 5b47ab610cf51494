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
    case refused(ClientError)
    case ended
  }

  @MainActor func run() async throws {
    let board = try await MirrorStore.connect(optimistic: Board(), daemon.options)
    let (events, continuation) = AsyncStream<Event>.makeStream()
    let changes = Task { [states = board.observe(\.self)] in
      for await _ in states { continuation.yield(.changed) }
      continuation.yield(.ended)
    }
    let refusals = Task { [failed = board.failedPosts] in
      for await post in failed { continuation.yield(.refused(post.error)) }
    }
    Screen.readKeys { continuation.yield(.key($0)) }
    let screen = Screen()
    defer {
      changes.cancel()
      refusals.cancel()
      screen.close()
    }
    var player = Player(name: name, board: board)
    var drawn: [String] = []
    events: for await event in events {
      switch event {
      case .key(.quit): break events
      case .key(let key): player.press(key)
      case .changed: player.follow()
      case .refused(let error): player.refused(error)
      case .ended: throw Ended()
      }
      let lines = player.lines
      if lines != drawn { screen.draw(lines) }
      drawn = lines
    }
    await board.connection.finish()
  }

  private struct Ended: Error, CustomStringConvertible {
    var description: String { "the daemon has ended the connection" }
  }
}

/// A person at the board: a card under the cursor, and the actions of their keys.
@MainActor struct Player {
  private let name: String
  private let board: MirrorStore<Board>
  /// The card that the keys are about.
  private var card: Card.ID?
  /// Why the last key did nothing.
  private var message: String?
  /// The session in which a hand was entered, and whether the daemon has shown it.
  private var entered: (session: UInt64, isSeen: Bool)?

  init(name: String, board: MirrorStore<Board>) {
    self.name = name
    self.board = board
  }

  /// What is to be seen.
  var lines: [String] {
    Picture(board.state, mark: card).lines + (message.map { [$0] } ?? [])
  }

  /// The card in one's own hand.
  private var held: Card.ID? {
    board.connection.sessionNumber.flatMap { board.state.hands[$0]?.card }
  }

  /// Come to terms with a new state.
  mutating func follow() {
    enter()
    if card.flatMap({ board.state.place(of: $0) }) == nil {
      card = board.state.columns.lazy.compactMap(\.cards.first?.id).first
    }
  }

  /// Say why an action, which showed at once, was not done.
  mutating func refused(_ error: ClientError) {
    message = Picture.shown("that was not done: \(error)")
  }

  /// Show a hand: at the start, and again after a restart of the daemon. Once: it may refuse.
  private mutating func enter() {
    guard let session = board.connection.sessionNumber else { return }
    if board.confirmed.hands[session] != nil { return entered = (session, true) }
    if let entered, entered == (session, false) { return }
    entered = (session, false)
    board.post(.hands(.enter(Hand(name: name))), .optimistic)
  }

  mutating func press(_ key: Key) {
    message = nil
    switch key {
    case .space: take()
    case .undo:
      guard board.state.moves.contains(where: { $0.name == name }) else {
        return message = "you have moved nothing that could be put back"
      }
      board.post(.undo(by: name), .optimistic)
    case .quit: break
    case .left, .right, .up, .down: go(key)
    }
  }

  /// Take the card, or put it down.
  private mutating func take() {
    guard let card else { return }
    if held != card, let holder = board[Board.State.holders][card] {
      return message = Picture.shown("\(holder) holds card \(card)")
    }
    let hand = Hand(name: name, card: held == card ? nil : card)
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
    if held == card {
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
