public import Lockstep

/// Columns of cards, which several people move about at once.
public struct Board: Reducer {
  @ObservableState public struct State: Equatable, Sendable {
    public var columns: SyncIdentifiedArray<Column> = [
      Column(id: "todo"), Column(id: "doing"), Column(id: "done"),
    ]
    /// The number of the card that was added last.
    public var lastCard = 0
    /// The moves that can be undone, the latest last.
    public var moves: [Move] = []
    /// The hands of the clients that have the board open.
    @Ephemeral public var hands = Present<Hand>()

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable {
    case addColumn(String)
    case addCard(String, column: String = "todo")
    case removeCard(Card.ID)
    /// Moves a card to a row of a column; behind the last row is the end.
    case moveCard(Card.ID, column: String, row: Int = 1_000_000, by: String = "somebody")
    /// Undoes the last move under a name, unless the card was moved again.
    case undo(by: String)
    case hands(Presence<Hand>.Action)
  }

  /// How many moves are kept at most, so that they can be undone; at least half as many.
  static let undoLimit = 100

  @Dependency(\.origin) private var origin

  public init() {}

  public var body: some Reducer<State, Action> {
    Scope(state: \.hands, action: \.hands) { Presence<Hand>() }
    Reduce { state, action throws(Rejection) in
      switch action {
      case .addColumn(let name):
        if name.isEmpty { throw Rejection(.refused, "a column needs a name") }
        guard state.columns.append(Column(id: name)).inserted else {
          throw Rejection(.refused, "there is a column \(name) already")
        }
      case .addCard(let title, let column):
        if title.isEmpty { throw Rejection(.refused, "a card needs a title") }
        try state.require(column)
        state.lastCard += 1
        state.columns[id: column]?.cards.append(Card(id: state.lastCard, title: title))
      case .removeCard(let id):
        let place = try free(id, in: state)
        state.columns[id: place.column]?.cards.remove(id: id)
        state.moves.removeAll { $0.card == id }
      case .moveCard(let id, let column, let row, let name):
        let from = try free(id, in: state)
        try state.require(column)
        let to = state.move(id, from: from, to: Place(column: column, row: row))
        if to == from { break }
        state.moves.append(Move(card: id, name: name, from: from, to: to))
        // Many at once, because an array whose ends both change travels as if all of it had.
        if state.moves.count > Self.undoLimit { state.moves.removeFirst(Self.undoLimit / 2) }
      case .undo(let name):
        guard let index = state.moves.lastIndex(where: { $0.name == name }) else {
          throw Rejection(.refused, "\(name) has moved nothing that could be put back")
        }
        let move = state.moves[index]
        if let later = state.moves[(index + 1)...].last(where: { $0.card == move.card }) {
          throw Rejection(.refused, "\(later.name) has moved card \(move.card) since")
        }
        let place = try free(move.card, in: state)
        _ = state.move(move.card, from: place, to: move.from)
        state.moves.remove(at: index)
      case .hands(.enter(let hand, key: _)), .hands(.update(let hand, key: _)):
        // It is in the hand already: a rejection takes it out.
        if let card = hand.card { _ = try free(card, in: state) }
      case .hands: break
      }
      return .none
    }
  }

  /// Where a card is. Rejects the action if another client holds it.
  private func free(_ id: Card.ID, in state: State) throws(Rejection) -> Place {
    guard let place = state.place(of: id) else {
      throw Rejection(.badPath, "there is no card \(id)")
    }
    var own: UInt64?
    if case .client(let client) = origin { own = client.session }
    for (session, _, hand) in state.hands where hand.card == id && session != own {
      throw Rejection(.refused, "\(hand.name) holds card \(id)")
    }
    return place
  }
}

extension Board.State {
  /// Where a card is; nil if it is nowhere.
  public func place(of id: Card.ID) -> Place? {
    for column in columns {
      if let row = column.cards.index(id: id) { return Place(column: column.id, row: row) }
    }
    return nil
  }

  /// The holder's name of each card that is held.
  public static let holders = Selector(\Self.hands) { hands in
    Dictionary(hands.compactMap { hand in hand.entry.card.map { ($0, hand.entry.name) } }) { $1 }
  }

  fileprivate func require(_ column: Column.ID) throws(Rejection) {
    guard columns.contains(id: column) else {
      throw Rejection(.badPath, "there is no column \(column); there are: \(names)")
    }
  }

  private var names: String { columns.map(\.id).joined(separator: ", ") }

  /// Move a card between columns that there are. Returns where it is then.
  fileprivate mutating func move(_ id: Card.ID, from: Place, to: Place) -> Place {
    guard let card = columns[id: from.column]?.cards.remove(id: id) else { return from }
    let row = max(0, min(to.row, columns[id: to.column]?.cards.count ?? 0))
    columns[id: to.column]?.cards.insert(card, at: row)
    return Place(column: to.column, row: row)
  }
}
