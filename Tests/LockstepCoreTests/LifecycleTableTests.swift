import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

/// A feature with a hook for the start and for sessions.
private struct Ear: Reducer {
  struct State: Described {
    var count = 0
  }

  enum Action: DescribedAction {
    case started
    case session(UInt64)
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }

  var lifecycle: Lifecycle<State, Action> {
    .onStart { _ in .started }.onSession { event, _ in [.session(event.session)] }
  }
}

/// A reactor whose events begin but never arrive.
private struct Source: Reactor {
  struct State: Described {
    var count = 0
  }

  enum Action: DescribedAction {
    case measure
  }

  var initialState: State { State() }
  var events: Mutations<Int>? { Mutations(AsyncStream { _ in }) }

  func mutate(action: Action, state: State) -> Mutations<Int> { .empty }

  func reduce(state: State, mutation: Int) -> State { State(count: mutation) }
}

/// Wraps a reducer of the same state.
private struct Parent<Child: Reducer>: Reducer {
  let child: Child

  var body: some Reducer<Child.State, Child.Action> { child }
}

/// A parent of one child.
private struct Home<Child: Reducer>: Reducer where Child.State: Described, Child.Action: Equatable {
  struct State: Described {
    var part: Child.State
    var rows: SyncMap<Int, Child.State>
    var sheet: Child.State?

    init(_ child: Child.State) {
      part = child
      rows = [1: child]
      sheet = child
    }
  }

  enum Action: DescribedAction, CasePathable {
    case part(Child.Action)
    case row(Int, Child.Action)
    case sheet(Child.Action)
    case own

    struct AllCasePaths: Sendable {
      var part: CasePath<Action, Child.Action> {
        CasePath(embed: { .part($0) }, extract: { if case .part(let a) = $0 { a } else { nil } })
      }
      var row: CasePath<Action, (Int, Child.Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let a) = $0 { (id, a) } else { nil } })
      }
      var sheet: CasePath<Action, Child.Action> {
        CasePath(embed: { .sheet($0) }, extract: { if case .sheet(let a) = $0 { a } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  let place: Place
  let child: Child

  var body: some Reducer<State, Action> {
    switch place {
    case .scope: Scope(state: \.part, action: \.part) { child }
    case .pullback: child.pullback(state: \.part, action: \.part)
    case .forEach: EmptyReducer<State, Action>().forEach(\.rows, action: \.row) { child }
    case .ifLet: EmptyReducer<State, Action>().ifLet(\.sheet, action: \.sheet) { child }
    }
  }

  var lifecycle: Lifecycle<State, Action> {
    .onStart { _ in .own }.onSession { _, _ in [.own] }
  }

  /// An action of the child.
  func action(_ action: Child.Action) -> Action {
    switch place {
    case .scope, .pullback: .part(action)
    case .forEach: .row(1, action)
    case .ifLet: .sheet(action)
    }
  }
}

private enum Place: CaseIterable { case scope, pullback, forEach, ifLet }

/// A parent whose state has one case, which is the child.
private struct CaseHome<Child: Reducer>: Reducer
where Child.State: Described, Child.Action: Equatable {
  enum State: Described, CasePathable {
    case row(Child.State)

    struct AllCasePaths: Sendable {
      var row: CasePath<State, Child.State> {
        CasePath(embed: { .row($0) }, extract: { if case .row(let row) = $0 { row } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  enum Action: DescribedAction, CasePathable {
    case row(Child.Action)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, Child.Action> {
        CasePath(embed: { .row($0) }, extract: { if case .row(let row) = $0 { row } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  let child: Child

  var body: some Reducer<State, Action> {
    EmptyReducer<State, Action>().ifCaseLet(\.row, action: \.row) { child }
  }
}

/// Every way to wrap a reducer in another, each alone: the wrapper forwards every life-cycle event.
@Suite struct LifecycleTableTests {
  private let ended = LifecycleEvent.session(.ended(session: 3, reason: .exited))
  private let started = LifecycleEvent.started(.first)

  private func same<R: Reducer>(
    as child: R
  ) -> [(name: String, reducer: Reduce<R.State, R.Action>)] where R.State: Described {
    let none = EmptyReducer<R.State, R.Action>()
    return [
      ("Reduce(child)", Reduce(child)),
      ("logging", Reduce(child.logging { _, _ in })),
      ("dependency", Reduce(child.dependency(\.date, .constant(Timestamp(nanoseconds: 0))))),
      ("onChange", Reduce(child.onChange(of: \.self) { _, _ in EmptyReducer() })),
      ("CombineReducers", Reduce(CombineReducers { child })),
      ("the body of a parent", Reduce(Parent(child: child))),
      (
        "the first of two", Reduce(ReducerBuilder.buildPartialBlock(accumulated: child, next: none))
      ),
      (
        "the second of two",
        Reduce(ReducerBuilder.buildPartialBlock(accumulated: none, next: child))
      ),
    ]
  }

  @Test func `a wrapped child of the same state is told of the start and of sessions`() {
    for (name, reducer) in same(as: Ear()) {
      let lifecycle = reducer.composedLifecycle
      #expect(lifecycle.actions(for: started, in: .init()) == [.started], "\(name)")
      #expect(lifecycle.actions(for: ended, in: .init()) == [.session(3)], "\(name)")
      #expect(lifecycle.watchesSessions, "\(name)")
    }
  }

  @Test func `the events of a reactor of the same state begin`() async {
    for (name, reducer) in same(as: Source().reducer) {
      let store = TestStore(initialState: Source.State()) { reducer }
      await store.tell(.first)
      #expect(store.runningEffects.map(\.name) == ["events"], "\(name)")
      await store.skipInFlightEffects()
    }
  }

  @Test(arguments: Place.allCases)
  private func `a child of a part is told before its parent`(place: Place) {
    let home = Home(place: place, child: Ear())
    let state = Home<Ear>.State(Ear.State())
    let lifecycle = home.composedLifecycle
    #expect(lifecycle.actions(for: started, in: state) == [home.action(.started), .own])
    #expect(lifecycle.actions(for: ended, in: state) == [home.action(.session(3)), .own])
    // The parent's own life cycle has only its own action.
    #expect(home.lifecycle.actions(for: started, in: state) == [.own])
  }

  @Test(arguments: Place.allCases)
  private func `the events of a child reactor begin`(place: Place) async {
    let store = TestStore(initialState: Home.State(Source.State())) {
      Home(place: place, child: Source().reducer)
    }
    await store.tell(.first)
    #expect(store.runningEffects.map(\.name) == ["events"])
    await store.skipInFlightEffects()
  }

  @Test func `a child in a case is told, and the events of a child reactor in a case begin`() async
  {
    let lifecycle = CaseHome(child: Ear()).composedLifecycle
    #expect(lifecycle.actions(for: started, in: .row(.init())) == [.row(.started)])
    #expect(lifecycle.actions(for: ended, in: .row(.init())) == [.row(.session(3))])
    let store = TestStore(initialState: CaseHome.State.row(Source.State())) {
      CaseHome(child: Source().reducer)
    }
    await store.tell(.first)
    #expect(store.runningEffects.map(\.name) == ["events"])
    await store.skipInFlightEffects()
  }
}
