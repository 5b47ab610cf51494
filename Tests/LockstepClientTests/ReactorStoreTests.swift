import Lockstep
import LockstepStore
import Synchronization
import Testing

/// Reactors in a store whose effects run on several threads.
@Suite struct ReactorStoreTests {
  struct Counting: Reactor {
    @ObservableState struct State: Equatable { var count = 0 }
    @Action enum Action: Equatable { case add(Int), addAndLook(Int) }

    /// The counts that a stream read, less than what it had added before.
    let misses = Misses()
    var initialState: State { State() }

    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> { action.map { $0 } }

    func mutate(action: Action, state: State) -> Mutations<Int> {
      switch action {
      case .add: .just(1)
      case .addAndLook(let times):
        Mutations { send in
          let before = try await currentState.count
          for added in 1...times {
            await send(1)
            if try await currentState.count < before + added { misses.note() }
          }
        }
      }
    }

    func reduce(state: State, mutation: Int) -> State { State(count: state.count + mutation) }
  }

  final class Misses: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func note() { value.withLock { $0 += 1 } }
  }

  @Test func `actions enter a whole stream in the order of their sending`() async {
    let store = Store.unchecked(initialState: Counting.State()) { Counting().reducer }
    let tasks = (0..<200).map { store.send(.action(.add($0))) }
    for task in tasks { await task.finish() }
    let order = store.log.all.compactMap { record -> Int? in
      if case .transformed(.add(let number))? = record.action { number } else { nil }
    }
    #expect(order == Array(0..<200))
  }

  @Test func `a stream reads what it has changed, while others change the state, too`() async {
    let reactor = Counting()
    let store = Store.unchecked(initialState: Counting.State()) { reactor.reducer }
    for _ in 0..<8 { store.send(.action(.addAndLook(50))) }
    for await state in store.changes where state.count == 400 { break }
    #expect(store.count == 400 && reactor.misses.count == 0)
  }

  @Test func `a stub shows the state that is set, and records actions`() {
    let store = Store.unchecked(initialState: Counting.State()) { Counting().stub }
    store.send(.stub(Counting.State(count: 7)))
    store.send(.action(.add(1)))
    #expect(store.count == 7)
    #expect(store.log.newest?.action == .action(.add(1)))
  }
}
