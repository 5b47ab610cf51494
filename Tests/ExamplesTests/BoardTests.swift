import BoardFeature
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite struct BoardTests {
  /// A board with these cards in its column "todo".
  private func store(_ cards: String...) -> TestStore<Board> {
    var state = Board.State()
    for title in cards {
      state.lastCard += 1
      state.columns[id: "todo"]?.cards.append(Card(id: state.lastCard, title: title))
    }
    return TestStore(initialState: state) { Board() }
  }

  private func ids(_ column: String, of store: TestStore<Board>) -> [Int] {
    store.state.columns[id: column]?.cards.map(\.id) ?? []
  }

  @Test func `cards are added at the end of a column, and numbered`() async {
    let store = store()
    await store.send(.addCard("milk")) {
      $0.lastCard = 1
      $0.columns[id: "todo"]?.cards = [Card(id: 1, title: "milk")]
    }
    await store.send(.addCard("eggs", column: "done")) {
      $0.lastCard = 2
      $0.columns[id: "done"]?.cards = [Card(id: 2, title: "eggs")]
    }
    await store.send(
      .addCard("bread", column: "later"),
      rejected: Rejection(.badPath, "there is no column later; there are: todo, doing, done"))
  }

  @Test func `columns are added at the right, with names of their own`() async {
    let store = store()
    await store.send(.addColumn("later")) { $0.columns.append(Column(id: "later")) }
    await store.send(
      .addColumn("later"), rejected: Rejection(.refused, "there is a column later already"))
    await store.send(.addColumn(""), rejected: Rejection(.refused, "a column needs a name"))
    await store.send(.addCard(""), rejected: Rejection(.refused, "a card needs a title"))
  }

  @Test func `a card goes to a row, and what is not there is the end`() async {
    let store = store("milk", "eggs", "bread")
    store.exhaustivity = .off
    await store.send(.moveCard(3, column: "todo", row: 0))
    #expect(ids("todo", of: store) == [3, 1, 2])
    await store.send(.moveCard(3, column: "todo", row: 1))
    #expect(ids("todo", of: store) == [1, 3, 2])
    await store.send(.moveCard(1, column: "doing", row: 7))
    await store.send(.moveCard(2, column: "doing"))
    await store.send(.moveCard(3, column: "doing", row: -1))
    #expect(ids("doing", of: store) == [3, 1, 2] && ids("todo", of: store) == [])
    #expect(
      store.state.moves.last
        == Move(
          card: 3, name: "somebody", from: Place(column: "todo", row: 0),
          to: Place(column: "doing", row: 0)))
  }

  @Test func `a move to where the card is already is none`() async {
    let store = store("milk", "eggs")
    await store.send(.moveCard(1, column: "todo", row: 0))
    await store.send(.moveCard(2, column: "todo"))
  }

  @Test func `undo puts back one's own last move, unless the card was moved since`() async {
    let store = store("milk", "eggs", "bread")
    store.exhaustivity = .off
    await store.send(.moveCard(1, column: "doing", by: "Ann"))
    await store.send(.moveCard(2, column: "doing", row: 0, by: "Bob"))
    await store.send(.undo(by: "Ann"))
    #expect(ids("todo", of: store) == [1, 3] && ids("doing", of: store) == [2])
    await store.send(.moveCard(2, column: "done", by: "Ann"))
    await store.send(
      .undo(by: "Bob"), rejected: Rejection(.refused, "Ann has moved card 2 since"))
    await store.send(.undo(by: "Ann"))
    await store.send(.undo(by: "Bob"))
    // To the row that it had then.
    #expect(ids("todo", of: store) == [2, 1, 3] && store.state.moves == [])
    await store.send(
      .undo(by: "Bob"),
      rejected: Rejection(.refused, "Bob has moved nothing that could be put back"))
  }

  @Test func `what a removed card has been through is forgotten`() async {
    let store = store("milk")
    store.exhaustivity = .off
    await store.send(.moveCard(1, column: "doing", by: "Ann"))
    await store.send(.removeCard(1))
    #expect(store.state.moves == [] && store.state.place(of: 1) == nil)
    await store.send(.removeCard(1), rejected: Rejection(.badPath, "there is no card 1"))
  }

  @Test func `only so many moves are remembered`() async {
    let store = store("milk")
    store.exhaustivity = .off
    for number in 0..<150 {
      await store.send(.moveCard(1, column: number.isMultiple(of: 2) ? "doing" : "todo"))
    }
    #expect((50...100).contains(store.state.moves.count))
  }

  @Test func `a card that somebody holds is moved by nobody else, until they are gone`() async {
    let store = store("milk")
    store.exhaustivity = .off
    let (ann, bob): (Cause, Cause) = (.client(session: 1), .client(session: 2))
    await store.send(.hands(.enter(Hand(name: "Ann", card: 1))), from: ann)
    #expect(Board.State.holders(store.state) == [1: "Ann"])
    let refusal = Rejection(.refused, "Ann holds card 1")
    await store.send(
      .hands(.enter(Hand(name: "Bob", card: 1))), from: bob, rejected: refusal)
    #expect(store.state.hands.sessionCount == 1)
    await store.send(.moveCard(1, column: "done", by: "Bob"), from: bob, rejected: refusal)
    await store.send(.removeCard(1), from: bob, rejected: refusal)
    await store.send(.moveCard(1, column: "done", by: "Ann"), from: ann)
    await store.send(.undo(by: "Ann"), from: bob, rejected: refusal)
    await store.tell(.ended(session: 1, reason: .exited))
    await store.send(.undo(by: "Ann"), from: bob)
    #expect(ids("todo", of: store) == [1] && Board.State.holders(store.state).isEmpty)
  }
}
