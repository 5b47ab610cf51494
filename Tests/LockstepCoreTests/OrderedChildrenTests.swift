import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

/// A parent with ordered rows.
private struct Deck: Reducer {
  struct State: Described {
    var rows: SyncIdentifiedArray<Row.State> = []

    init(rows: Int...) { self.rows = .init(uniqueElements: rows.map { Row.State(id: $0) }) }
  }

  enum Action: DescribedAction, CasePathable {
    case row(id: Int, action: Row.Action)
    case insert(Int, at: Int)
    case move(Int, to: Int)
    case remove(Int)
    /// Removes a row, and inserts a new one with its id at the front.
    case replace(Int)
    case sort, clear

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, (id: Int, action: Row.Action)> {
        CasePath(
          embed: { .row(id: $0.id, action: $0.action) },
          extract: { if case .row(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      switch action {
      case .row: break
      case .insert(let id, let index): state.rows.insert(Row.State(id: id), at: index)
      case .move(let id, let index): state.rows.move(id: id, to: index)
      case .remove(let id): state.rows.remove(id: id)
      case .replace(let id):
        state.rows[id: id] = nil
        state.rows.insert(Row.State(id: id), at: 0)
      case .sort: state.rows.sort { $0.id < $1.id }
      case .clear: state.rows = []
      }
      return .none
    }
    .forEach(\.rows, action: \.row) { Row() }
  }
}

/// A row that is told of the start, and its parent.
private struct Started: Reducer {
  struct State: Described {
    var rows: SyncIdentifiedArray<Row.State> = []
    var log: [String] = []
  }

  enum Action: DescribedAction, CasePathable {
    case row(Int, Row.Action)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, (Int, Row.Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  struct StartedRow: Reducer {
    func reduce(into state: inout Row.State, action: Row.Action) -> Effect<Row.Action> {
      state.log.append(action.name)
      return .none
    }
    var lifecycle: Lifecycle<Row.State, Row.Action> { .onStart { _ in .start } }
  }

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      if case .row(let id, let action) = action { state.log.append("\(id) \(action.name)") }
      return .none
    }
    .forEach(\.rows, action: \.row) { StartedRow() }
  }
}

@Suite("Reducers: ordered children")
struct OrderedChildrenTests {
  private func bench() -> Bench<Deck> {
    var bench = Bench(Deck.State(rows: 3, 1, 2), Deck())
    for id in [3, 1, 2] { bench.send(.row(id: id, action: .start)) }
    return bench
  }

  @Test("2.1.9: rows keep effects and names when others are inserted, moved or removed before them")
  func identity() {
    var bench = bench()
    let started = bench.core.runningEffects.map(\.sequence)
    #expect(started == [1, 2, 3])
    for action: Deck.Action in [
      .insert(9, at: 0), .move(2, to: 0), .move(1, to: 3), .sort, .insert(5, at: 2), .remove(5),
    ] {
      bench.send(action)
      #expect(bench.core.runningEffects.map(\.sequence) == started && bench.cancelled == [])
    }
    #expect(Array(bench.core.state.rows.ids) == [1, 2, 3, 9])
    // The name is that of the row, wherever it is.
    bench.send(.row(id: 2, action: .stop))
    #expect(bench.core.runningEffects.map(\.sequence) == [1, 2])
    bench.send(.remove(3))
    #expect(bench.core.runningEffects.map(\.sequence) == [2])
    bench.send(.clear)
    #expect(bench.running == [] && bench.core.effectCount == 0)
  }

  @Test(
    "testElementAction, testMissingElement 2.1.9: a row reduces in place, an absent one warns")
  func rowActions() {
    var bench = bench()
    bench.send(.row(id: 1, action: .open))
    #expect(bench.core.state.rows[1].log == ["start", "open"])
    #expect(bench.core.state.rows[id: 3]?.log == ["start"])
    #expect(bench.send(.row(id: 8, action: .open)) == [.unchanged])
    #expect(bench.core.takeWarnings().first?.contains("row of 8") == true)
  }

  @Test("2.1.9: a row removed and inserted again in one action keeps its effects, by its id")
  func replacedRow() {
    var bench = bench()
    bench.send(.replace(2))
    #expect(Array(bench.core.state.rows.ids) == [2, 3, 1])
    #expect(bench.core.state.rows[id: 2]?.log == [] && bench.cancelled == [])
    bench.send(.remove(2))
    bench.send(.insert(2, at: 1))
    #expect(bench.core.runningEffects.map(\.sequence) == [1, 2])
  }

  @Test("2.1.9: rows are told of the start in their order")
  func lifecycle() {
    let rows = [5, 2, 9].map { Row.State(id: $0) }
    let state = Started.State(rows: .init(uniqueElements: rows))
    let actions = Started().composedLifecycle.actions(for: .started(.first), in: state)
    #expect(actions == [.row(5, .start), .row(2, .start), .row(9, .start)])
    var bench = Bench(state, Started())
    for action in actions { bench.send(action) }
    #expect(bench.core.state.log == ["5 start", "2 start", "9 start"])
    #expect(bench.core.state.rows.allSatisfy { $0.log == ["start"] })
  }

  @Test func `a test store asserts on ordered rows`() async {
    let store = TestStore(initialState: Deck.State(rows: 1, 2, 3)) { Deck() }
    await store.send(.move(3, to: 0)) { $0.rows.move(id: 3, to: 0) }
    await store.send(.row(id: 2, action: .open)) {
      $0.rows[id: 2]?.log = ["open"]
      $0.rows[id: 2]?.detail = Row.State.Detail()
    }
    await store.send(.remove(3)) { $0.rows.remove(id: 3) }
  }
}
