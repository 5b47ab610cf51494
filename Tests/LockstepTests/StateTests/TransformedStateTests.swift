import Lockstep
import Testing

/// A state of which another one is shown.
@Suite struct TransformedStateTests {
  private struct Doubling: StateTransformingReactor {
    typealias Action = TodoAction
    var initialState: Todos.State { Todos.State() }
    func mutate(action: Action, state: Todos.State) -> Mutations<Int> { .empty }
    func reduce(state: Todos.State, mutation: Int) -> Todos.State { state }

    func transform(state: Todos.State) -> Todos.State {
      var shown = state
      shown.count *= 2
      shown.fact = state.fact == nil ? "none" : nil
      return shown
    }
  }

  private typealias State = TransformedState<Todos.State>

  private func random(_ random: inout Random) -> State {
    var state = Todos.State()
    state.count = random.below(3)
    state.fact = random.below(2) == 0 ? nil : "fact"
    for number in 0..<random.below(4) { state.todos[number] = Todo(title: "\(random.below(2))") }
    return State(state, of: Doubling())
  }

  @Test func `it keeps the law, and travels as a struct of both`() throws {
    var numbers = Random(15)
    for _ in 0..<200 {
      let (old, new) = (random(&numbers), random(&numbers))
      try expectLaw(from: old, to: new)
      #expect(try decoded(State.self, bytes(new)) == new)
    }
  }

  @Test func `a view's path leads to what is shown`() {
    #expect(State.path(of: \.shown) == Path([.integer(1)]))
    #expect(State.path(of: \.shown.count) == Path([.integer(1), .integer(0)]))
    #expect(State.path(of: \.reduced) == Path([.integer(0)]))
  }
}
