import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

/// A feature that records its session events.
private struct Listener: Reducer {
  struct State: Described, Identifiable {
    var id = 0
    var heard: [SessionEvent] = []
  }

  enum Action: DescribedAction {
    case hear(SessionEvent)
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    if case .hear(let news) = action { state.heard.append(news) }
    return .none
  }

  var lifecycle: Lifecycle<State, Action> { .onSession { event, _ in [.hear(event)] } }
}

/// A parent with a listener in every position where a child can be.
private struct Parent: Reducer {
  struct State: Described {
    var first = Listener.State(id: 1)
    var second = Listener.State(id: 2)
    var rows: SyncMap<Int, Listener.State> = [:]
    var sheet: Listener.State?
    var own = 0
  }

  enum Action: DescribedAction, CasePathable {
    case first(Listener.Action)
    case second(Listener.Action)
    case row(Int, Listener.Action)
    case sheet(Listener.Action)
    case own

    struct AllCasePaths: Sendable {
      var first: CasePath<Action, Listener.Action> {
        CasePath(embed: { .first($0) }, extract: { if case .first(let a) = $0 { a } else { nil } })
      }
      var second: CasePath<Action, Listener.Action> {
        CasePath(
          embed: { .second($0) }, extract: { if case .second(let a) = $0 { a } else { nil } })
      }
      var row: CasePath<Action, (Int, Listener.Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let a) = $0 { (id, a) } else { nil } })
      }
      var sheet: CasePath<Action, Listener.Action> {
        CasePath(embed: { .sheet($0) }, extract: { if case .sheet(let a) = $0 { a } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    CombineReducers {
      Scope(state: \.first, action: \.first) { Listener() }
      Listener().pullback(state: \.second, action: \.second)
      Reduce<State, Action> { state, action in
        if action == .own { state.own += 1 }
        return .none
      }
    }
    .forEach(\.rows, action: \.row) { Listener() }
    .ifLet(\.sheet, action: \.sheet) { Listener() }
    .logging { _, _ in }
    .onChange(of: \.own) { _, _ in EmptyReducer() }
  }

  var lifecycle: Lifecycle<State, Action> { .onSession { _, _ in [.own] } }
}

/// A state that is an enumeration with one case that listens.
private struct Panel: Reducer {
  enum State: Described, CasePathable {
    case list
    case row(Listener.State)

    struct AllCasePaths: Sendable {
      var row: CasePath<State, Listener.State> {
        CasePath(embed: { .row($0) }, extract: { if case .row(let row) = $0 { row } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  enum Action: DescribedAction, CasePathable {
    case row(Listener.Action)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, Listener.Action> {
        CasePath(embed: { .row($0) }, extract: { if case .row(let row) = $0 { row } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    EmptyReducer().ifCaseLet(\.row, action: \.row) { Listener() }
  }
}

@Suite struct SessionNewsTests {
  private let lost = SessionEvent.lost(session: 3)

  @Test func `a session event goes to every present child first, then to the feature`() {
    let heard = Listener.Action.hear(lost)
    var state = Parent.State()
    let lifecycle = Parent().composedLifecycle
    #expect(lifecycle.watchesSessions)
    let always: [Parent.Action] = [.first(heard), .second(heard), .own]
    #expect(lifecycle.actions(for: .session(lost), in: state) == always)
    state.sheet = Listener.State()
    for id in 1...3 { state.rows[id] = Listener.State(id: id) }
    let actions = lifecycle.actions(for: .session(lost), in: state)
    #expect(actions.first == .sheet(heard))
    #expect((1...3).allSatisfy { actions.dropFirst().prefix(3).contains(.row($0, heard)) })
    #expect(Array(actions.dropFirst(4)) == always)
  }

  @Test func `a test store delivers session events as a daemon does`() async {
    var state = Parent.State()
    state.rows[7] = Listener.State(id: 7)
    let store = TestStore(initialState: state) { Parent() }
    await store.tell(lost) { [lost] in
      $0.first.heard = [lost]
      $0.second.heard = [lost]
      $0.rows[7]?.heard = [lost]
      $0.own = 1
    }
  }

  @Test func `a session event goes to the child of the current case`() {
    let lifecycle = Panel().composedLifecycle
    #expect(lifecycle.watchesSessions)
    #expect(lifecycle.actions(for: .session(lost), in: .list) == [])
    #expect(lifecycle.actions(for: .session(lost), in: .row(.init())) == [.row(.hear(lost))])
  }

  @Test func `a feature that does not watch sessions gets no session events`() async {
    #expect(
      !Board().composedLifecycle.watchesSessions && !Sheet().composedLifecycle.watchesSessions)
    let store = TestStore(initialState: Trace()) { Script.script { _ in .none } }
    await store.tell(lost)
  }

  @Test(arguments: [false, true])
  func `a condition or a loop in a builder watches sessions if its content does`(watches: Bool) {
    func built(
      @ReducerBuilder<Listener.State, Listener.Action> _ content: () -> some Reducer<
        Listener.State, Listener.Action
      >
    ) -> [Bool] {
      let content = content()
      return [content.composedLifecycle, Reduce(content).composedLifecycle].flatMap {
        let hears = $0.actions(for: .session(lost), in: .init()) == [.hear(lost)]
        return [$0.watchesSessions, hears]
      }
    }
    let expected = Array(repeating: watches, count: 4)
    #expect(built { if watches { Listener() } } == expected)
    #expect(built { if watches { Listener() } else { EmptyReducer() } } == expected)
    #expect(built { if !watches { EmptyReducer() } else { Listener() } } == expected)
    #expect(built { for _ in 0..<(watches ? 1 : 0) { Listener() } } == expected)
  }

  @Test(
    arguments: [
      (.ended(session: 1, reason: .exited), [0x83, 0, 1, 0x66] + Array("exited".utf8)),
      (.lost(session: 24), [0x82, 1, 0x18, 24]), (.returned(session: 2), [0x82, 2, 2]),
    ] as [(SessionEvent, [UInt8])])
  func `a session event is encoded as an enumeration`(news: SessionEvent, bytes: [UInt8]) throws {
    var encoder = CBOREncoder()
    news.encode(into: &encoder)
    #expect(encoder.bytes == bytes)
    #expect(try decode(bytes) == news)
    #expect(throws: CBORError.self) { try decode([0x82, 3, 1]) }
  }

  private func decode(_ bytes: [UInt8]) throws -> SessionEvent {
    try bytes.withUnsafeBytes {
      var decoder = CBORDecoder($0)
      return try SessionEvent(from: &decoder, seed: .unseeded)
    }
  }
}
