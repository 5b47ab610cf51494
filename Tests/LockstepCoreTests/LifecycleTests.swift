import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

/// A feature that records its life-cycle events.
private struct Told: Reducer {
  struct State: Described, Identifiable {
    var id = 0
    var log: [String] = []
  }

  enum Action: DescribedAction {
    case hear(String)
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    if case .hear(let text) = action { state.log.append(text) }
    return .none
  }

  var lifecycle: Lifecycle<State, Action> {
    .onStart { .hear("\($0)") }
      .onSession { event, _ in
        if case .ended(let session, _) = event { [.hear("\(session) ended")] } else { [] }
      }
  }
}

/// A feature that contains itself: a row with rows, as in the fifth case study of The Composable
/// Architecture.
private struct Node: Reducer {
  struct State: Described {
    var name = ""
    var rows: SyncMap<Int, State> = [:]
  }

  indirect enum Action: DescribedAction, CasePathable {
    case rename(String)
    case add
    case remove(Int)
    case row(Int, Action)
    case work, stop
    case started(Start)
    case heard(SessionEvent)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, (Int, Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var isTold = false

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      switch action {
      case .rename(let name): state.name = name
      case .add: state.rows[state.rows.count] = State()
      case .remove(let id): state.rows[id] = nil
      case .row: break
      case .work: return .never("work").cancellable(id: "work")
      case .stop: return .cancel(id: "work")
      case .started(let start): state.name += "\(start)"
      case .heard(let news): state.name += " heard of \(news.session)"
      }
      return .none
    }
    .forEach(\.rows, action: \.row) { Node(isTold: isTold) }
  }

  var lifecycle: Lifecycle<State, Action> {
    isTold ? .onStart { .started($0) }.onSession { event, _ in [.heard(event)] } : .none
  }
}

@Suite("Life cycle")
struct LifecycleTests {
  private let ended = SessionEvent.ended(session: 3, reason: .exited)

  // MARK: Features that contain themselves

  @Test("2.1.9: a recursive feature reduces at every depth, and its life cycle is finite")
  func recursion() {
    for reducer in [Reduce(Node()), Reduce(Node().logging { _, _ in })] {
      #expect(!reducer.composedLifecycle.watchesSessions)
      #expect(reducer.composedLifecycle.actions(for: .started(.first), in: .init()) == [])
      var bench = Bench(Node.State(), reducer)
      bench.send(.add)
      bench.send(.row(0, .add))
      bench.send(.row(0, .row(0, .add)))
      bench.send(.row(0, .row(0, .row(0, .rename("deep")))))
      #expect(bench.core.state.rows[0]?.rows[0]?.rows[0]?.name == "deep")
      #expect(bench.core.takeWarnings() == [])
    }
  }

  @Test("2.1.9: removing a row cancels the effects of the rows inside it")
  func recursiveEffects() async {
    let row = Node.State(rows: [0: Node.State()])
    let store = TestStore(initialState: Node.State(rows: [0: row, 1: row])) { Node() }
    for id in 0...1 { await store.send(.row(id, .row(0, .work))) }
    #expect(store.runningEffects.count == 2)
    await store.send(.row(1, .row(0, .stop)))
    await store.send(.remove(0)) { $0.rows[0] = nil }
    #expect(store.runningEffects == [])
    await store.finish()
  }

  @Test("3.1: a recursive feature is told at every depth, the deepest first")
  func recursiveNews() async {
    let row = Node.State(rows: [7: Node.State()])
    let state = Node.State(rows: [1: row])
    let store = TestStore(initialState: state) { Node(isTold: true) }
    await store.tell(.restarted) {
      $0.name = "restarted"
      $0.rows[1]?.name = "restarted"
      $0.rows[1]?.rows[7]?.name = "restarted"
    }
    await store.tell(ended) {
      $0.name += " heard of 3"
      $0.rows[1]?.name += " heard of 3"
      $0.rows[1]?.rows[7]?.name += " heard of 3"
    }
    #expect(Node(isTold: true).composedLifecycle.watchesSessions)
    let actions = Node(isTold: true).composedLifecycle.actions(for: .started(.first), in: state)
    let own = Node.Action.started(.first)
    #expect(actions == [.row(1, .row(7, own)), .row(1, own), own])
  }

  // MARK: Combinators

  /// A parent with a child in every position where a child can be.
  private struct Parent: Reducer {
    struct State: Described {
      var first = Told.State()
      var second = Told.State()
      var rows: SyncMap<Int, Told.State> = [:]
      var sheet: Told.State?
      var own: [String] = []
    }

    enum Action: DescribedAction, CasePathable {
      case first(Told.Action)
      case second(Told.Action)
      case row(Int, Told.Action)
      case sheet(Told.Action)
      case started(Start)

      struct AllCasePaths: Sendable {
        var first: CasePath<Action, Told.Action> {
          CasePath(
            embed: { .first($0) }, extract: { if case .first(let a) = $0 { a } else { nil } })
        }
        var second: CasePath<Action, Told.Action> {
          CasePath(
            embed: { .second($0) }, extract: { if case .second(let a) = $0 { a } else { nil } })
        }
        var row: CasePath<Action, (Int, Told.Action)> {
          CasePath(
            embed: { .row($0.0, $0.1) },
            extract: { if case .row(let id, let a) = $0 { (id, a) } else { nil } })
        }
        var sheet: CasePath<Action, Told.Action> {
          CasePath(
            embed: { .sheet($0) }, extract: { if case .sheet(let a) = $0 { a } else { nil } })
        }
      }
      static var allCasePaths: AllCasePaths { AllCasePaths() }
    }

    var body: some Reducer<State, Action> {
      CombineReducers {
        Scope(state: \.first, action: \.first) { Told() }
        Told().pullback(state: \.second, action: \.second)
        Reduce<State, Action> { state, action in
          if case .started(let start) = action { state.own.append("\(start)") }
          return .none
        }
      }
      .forEach(\.rows, action: \.row) { Told() }
      .ifLet(\.sheet, action: \.sheet) { Told() }
      .logging { _, _ in }
      .onChange(of: \.own) { _, _ in EmptyReducer() }
    }

    var lifecycle: Lifecycle<State, Action> { .onStart { .started($0) } }
  }

  @Test("3.1: every present child is told of the start, and then the feature itself")
  func startOfChildren() async {
    var state = Parent.State()
    state.rows[4] = Told.State()
    state.sheet = Told.State()
    let store = TestStore(initialState: state) { Reduce(Parent()) }
    await store.tell(.crashed) {
      for child in [\Parent.State.first, \.second] { $0[keyPath: child].log = ["crashed"] }
      $0.rows[4]?.log = ["crashed"]
      $0.sheet?.log = ["crashed"]
      $0.own = ["crashed"]
    }
    #expect(store.log.newest?.name == "started" && store.log.newest?.cause.origin == .owner)
    let actions = Parent().composedLifecycle.actions(for: .started(.first), in: Parent.State())
    #expect(actions == [.first(.hear("first")), .second(.hear("first")), .started(.first)])
  }

  @Test(
    "3.1: a condition or a loop in a builder forwards life-cycle events", arguments: [0, 1])
  func builders(count: Int) {
    func built(
      @ReducerBuilder<Told.State, Told.Action> _ content: () -> some Reducer<
        Told.State, Told.Action
      >
    ) -> [Int] {
      let content = content()
      return [content.composedLifecycle, CombineReducers { content }.composedLifecycle].map {
        $0.actions(for: .started(.first), in: .init()).count
      }
    }
    let expected = [count, count]
    #expect(built { if count == 1 { Told() } } == expected)
    #expect(built { if count == 1 { Told() } else { EmptyReducer() } } == expected)
    #expect(built { if count != 1 { EmptyReducer() } else { Told() } } == expected)
    #expect(built { for _ in 0..<count { Told() } } == expected)
  }

  /// A user's reducer that calls another in `reduce`.
  private struct Twice<Base: Reducer>: Reducer {
    let base: Base

    func reduce(
      into state: inout Base.State, action: Base.Action
    ) throws(Rejection) -> Effect<Base.Action> {
      .merge(
        try base.reduce(into: &state, action: action),
        try base.reduce(into: &state, action: action))
    }

    var lifecycle: Lifecycle<Base.State, Base.Action> { .of(base) }
  }

  @Test("3.1: a reducer that calls another in `reduce` forwards its life cycle explicitly")
  func forwarding() async {
    let store = TestStore(initialState: Told.State()) { Twice(base: Told()) }
    await store.tell(.first) { $0.log = ["first", "first"] }
    await store.tell(ended) { $0.log += ["3 ended", "3 ended"] }
    await store.tell(.lost(session: 3))
    #expect(Twice(base: Told()).composedLifecycle.watchesSessions)
  }

  @Test func `only a feature with onSession watches sessions`() {
    #expect(Told().composedLifecycle.watchesSessions && Told().lifecycle.watchesSessions)
    #expect(!Board().composedLifecycle.watchesSessions && !Node().composedLifecycle.watchesSessions)
    let silent = Lifecycle<Told.State, Told.Action>.onSession { _, _ in [] }
    #expect(silent.watchesSessions && silent.actions(for: .session(ended), in: .init()) == [])
    #expect(!Lifecycle<Told.State, Told.Action>.onStart { _ in nil }.watchesSessions)
  }

  // MARK: Reactors

  /// A reactor that also has mutations from events.
  private struct Gauge: Reactor {
    struct State: Described {
      var values: [Int] = []
    }

    enum Action: DescribedAction { case measure }

    var first = 0
    var initialState: State { State(values: [first]) }

    func mutate(action: Action, state: State) -> Mutations<Int> { .just(-1) }

    func reduce(state: State, mutation: Int) -> State { State(values: state.values + [mutation]) }

    var events: Mutations<Int>? {
      @Dependency(\.clock) var clock
      return Mutations { [clock] send in
        for number in 1... {
          try await clock.pause(for: .seconds(1))
          await send(number)
        }
      }
    }
  }

  /// A feature with a reactor beside a reducer, and with a reactor in each row.
  private struct House: Reducer {
    struct State: Described {
      var name = ""
      var gauge = Gauge.State()
      var rooms: SyncMap<Int, Gauge.State> = [:]
    }

    enum Action: DescribedAction, CasePathable {
      case rename(String)
      case gauge(ReactorAction<Gauge>)
      case room(Int, ReactorAction<Gauge>)
      case add(Int), remove(Int)

      struct AllCasePaths: Sendable {
        var gauge: CasePath<Action, ReactorAction<Gauge>> {
          CasePath(
            embed: { .gauge($0) }, extract: { if case .gauge(let a) = $0 { a } else { nil } })
        }
        var room: CasePath<Action, (Int, ReactorAction<Gauge>)> {
          CasePath(
            embed: { .room($0.0, $0.1) },
            extract: { if case .room(let id, let a) = $0 { (id, a) } else { nil } })
        }
      }
      static var allCasePaths: AllCasePaths { AllCasePaths() }
    }

    var body: some Reducer<State, Action> {
      Reduce<State, Action> { state, action in
        switch action {
        case .rename(let name): state.name = name
        case .add(let id):
          state.rooms[id] = Gauge.State()
          // The events of a child added later begin when its parent sends `.begin`.
          return .send(.room(id, .begin))
        case .remove(let id): state.rooms[id] = nil
        case .gauge, .room: break
        }
        return .none
      }
      .forEach(\.rooms, action: \.room) { Gauge().reducer }
      Scope(state: \.gauge, action: \.gauge) { Gauge(first: 20).reducer }
    }
  }

  @Test("RKT-19, 2.2: the events of a reactor inside a reducer begin with the store")
  func nestedEvents() async {
    let store = TestStore(initialState: House.State(rooms: [3: Gauge.State()])) { House() }
    await store.tell(.first)
    #expect(store.runningEffects.map(\.action) == ["room", "gauge.(begin)"])
    await store.clock.advance(by: .seconds(1))
    await store.receive(.room(3, .mutation(1))) { $0.rooms[3]?.values = [1] }
    await store.receive(.gauge(.mutation(1))) { $0.gauge.values = [1] }
    await store.send(.remove(3)) { $0.rooms[3] = nil }
    #expect(store.runningEffects.map(\.action) == ["gauge.(begin)"])
    await store.send(.gauge(.action(.measure)))
    await store.receive(.gauge(.mutation(-1))) { $0.gauge.values = [1, -1] }
    await store.skipInFlightEffects()
  }

  @Test("2.2: the events of a child added later begin when its parent says so, and end with it")
  func laterEvents() async {
    let store = TestStore(initialState: House.State()) { House() }
    await store.send(.add(5)) { $0.rooms[5] = Gauge.State() }
    await store.receive(.room(5, .begin))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.room(5, .mutation(1))) { $0.rooms[5]?.values = [1] }
    await store.send(.remove(5)) { $0.rooms[5] = nil }
    await store.finish()
  }

  @Test("RKT-06: the initial state of a reactor is used wherever the reactor is nested")
  func nestedInitialState() {
    let defaults = House.State(name: "default")
    let expected = House.State(name: "default", gauge: Gauge.State(values: [20]))
    #expect(House().composedLifecycle.initialState(defaults) == expected)
    #expect(
      Reduce(House()).logging { _, _ in }.composedLifecycle.initialState(defaults) == expected)
    #expect(Gauge(first: 4).reducer.composedLifecycle.initialState(nil) == Gauge.State(values: [4]))
    #expect(
      House().composedLifecycle.initialState(nil) == nil
        && Node().composedLifecycle.initialState(nil) == nil)
  }
}
