import CBOR
import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

@Suite("Reducers")
struct ReducerTests {
  /// Records a word for every action.
  struct Note: Reducer {
    let word: String

    func reduce(into state: inout Trace, action: Act) -> Effect<Act> {
      state.log.append(word)
      return .job(word)
    }
  }

  // MARK: The three shapes of the seeds

  @Test("RDX-08, RDX-11: a function from state and action to the next state")
  func reduxShape() {
    let reducer = Reduce<Trace, Act>(redux: { state, action in
      var mutatingState = state
      mutatingState.log.append(action.name)
      return mutatingState
    })
    var bench = Bench(Trace(), reducer)
    #expect(bench.send("a") == [.changed(1)] && bench.core.state.log == ["a"])
  }

  @Test("TCA-10, TCA-11: a function that changes the state in place")
  func changingShape() {
    let reducer = Reduce<Trace, Act>(changing: { state, action in state.log.append(action.name) })
    var bench = Bench(Trace(), reducer)
    #expect(bench.send("a") == [.changed(1)] && bench.core.state.log == ["a"])
  }

  @Test("RED-07: a type that reduces, and returns an effect")
  func typeShape() {
    var bench = Bench(Trace(), Note(word: "note"))
    #expect(bench.send("a") == [.changed(1)] && bench.running == ["note"])
  }

  // MARK: The builder

  struct Composed: Reducer {
    let isLoud: Bool
    let isLong: Bool

    var body: some Reducer<Trace, Act> {
      Note(word: "first")
      if isLoud { Note(word: "loud") }
      if isLong { Note(word: "long") } else { Note(word: "short") }
      for number in 1...2 { Note(word: "\(number)") }
      EmptyReducer<Trace, Act>()
    }
  }

  @Test("TCA-12, 2.1: reducers run in source order, on the same state, and their effects merge")
  func builder() {
    var bench = Bench(Trace(), Composed(isLoud: true, isLong: false))
    bench.send("go")
    #expect(bench.core.state.log == ["first", "loud", "short", "1", "2"])
    #expect(bench.running == bench.core.state.log)
    bench = Bench(Trace(), Composed(isLoud: false, isLong: true))
    bench.send("go")
    #expect(bench.core.state.log == ["first", "long", "1", "2"])
  }

  @Test("TCA-12: higher-order reducers, and a reducer of any type")
  func higherOrder() {
    let lines = Mutex<[String]>([])
    let reducer = CombineReducers {
      Note(word: "a")
      Reduce<Trace, Act>(Note(word: "b"))
    }.logging { action, state in lines.withLock { $0.append("\(action) \(state.log)") } }
    var bench = Bench(Trace(), reducer)
    bench.send("go")
    #expect(lines.withLock { $0 } == ["go [\"a\", \"b\"]"])
  }

  // MARK: Scope

  struct App: Reducer {
    struct State: Described {
      var counter = 0
      var row = Row.State(id: 1)
    }

    enum Action: DescribedAction, CasePathable {
      case row(Row.Action)
      case reset

      struct AllCasePaths: Sendable {
        var row: CasePath<Action, Row.Action> {
          CasePath(
            embed: { .row($0) }, extract: { if case .row(let action) = $0 { action } else { nil } })
        }
      }
      static var allCasePaths: AllCasePaths { AllCasePaths() }
    }

    var body: some Reducer<State, Action> {
      Scope(state: \.row, action: \.row) { Row() }
      Reduce<State, Action> { state, action in
        state.counter = state.row.log.count
        return .none
      }
    }
  }

  @Test("TCA-09, TCA-12: a child reduces its part, and its actions are a case")
  func scope() {
    var bench = Bench(App.State(), App())
    bench.send(.row(.start))
    #expect(bench.core.state.counter == 1 && bench.core.state.row.log == ["start"])
    #expect(bench.running == ["row"])
    bench.send(.reset)
    #expect(bench.core.state.row.log == ["start"])
    #expect(bench.core.log.last(2).map(\.name) == ["row.start", "reset"])
    bench.send(.row(.stop), by: "row")
    #expect(bench.running == [])
  }

  @Test("TCA-12: pullback is a Scope under another name")
  func pullback() {
    let reducer: Scope<App.State, App.Action, Row> = Row().pullback(state: \.row, action: \.row)
    var bench = Bench(App.State(), reducer)
    bench.send(.row(.start))
    #expect(bench.core.state.row.log == ["start"])
  }

  // MARK: Revisions and rejections

  @Test("3.3.G: an action that changes nothing makes no revision, and is logged")
  func unchanged() {
    var core = StoreCore(
      Trace(), reducer: Reduce<Trace, Act> { _, _ in .none }, seed: .unseeded)
    var patch = CBOREncoder()
    #expect(core.send("a", patch: &patch) == .unchanged)
    #expect(core.revision == 0 && core.sequence == 1 && patch.bytes.isEmpty)
    #expect(core.log.newest?.outcome == .unchanged)
  }

  @Test("2.5: a rejected action changes nothing, starts nothing, and the store continues")
  func rejection() {
    let reducer = Reduce<Trace, Act> { (state, action) throws(Rejection) in
      state.log.append(action.name)
      if action == "bad" { throw Rejection(.refused, "no") }
      return .job("work")
    }
    var bench = Bench(Trace(), reducer)
    #expect(bench.send("bad") == [.rejected(Rejection(.refused, "no"))])
    #expect(bench.core.state.log == [] && bench.core.revision == 0 && bench.started == [])
    #expect(bench.core.isDone(1) && bench.core.log.newest?.name == "bad")
    #expect(bench.send("good") == [.changed(1)] && bench.core.state.log == ["good"])
  }

  @Test("RKT-13, 3.3.A: each reduction that changes something is a revision of its own")
  func revisions() {
    var bench = Bench { $0 == "start" ? .merge(.send("a"), .send("b")) : .none }
    #expect(bench.send("start") == [.changed(1), .changed(2), .changed(3)])
  }
}
