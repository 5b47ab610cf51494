import Lockstep
import LockstepStore
import Testing

@Suite struct ThreadCheckTests {
  private static func makeStore(
    _ warnings: Recorder<String>, isolation: (any Actor)?, caller: (any Actor)?,
    delivery: EffectDelivery = .hopping,
    _ work: @escaping @Sendable (BoardAction) -> Effect<BoardAction> = { _ in .none }
  ) -> Store<Board> {
    Store(
      initialState: BoardState(), isolation: isolation, calledFrom: caller, delivery: delivery,
      warnings: warnings.warnings
    ) { Board { action, _ in work(action) } }
  }

  private static let elsewhere = "outside of the store's isolation, MainActor."

  @Test("EFF-07 EFF-13: a store warns when it is initialized, used or scoped outside its isolation")
  func calls() async {
    let warnings = Recorder<String>()
    let store = Self.makeStore(warnings, isolation: MainActor.shared, caller: nil)
    #expect(warnings.count == 1)
    #expect(
      warnings.all[0].hasPrefix(
        "A store was initialized outside of its isolation, MainActor."))
    store.send(.increment)
    #expect(warnings.count == 2 && store.state.count == 1)
    #expect(
      warnings.all[1].hasPrefix("Store.send was called \(Self.elsewhere) Action: increment."))
    let panel = store.scope(state: \.panel, action: \.panel)
    #expect(warnings.count == 3)
    #expect(warnings.all[2].hasPrefix("Store.scope was called \(Self.elsewhere)"))
    panel.send(.set(1))
    #expect(warnings.count == 4)
    #expect(
      warnings.all[3].hasPrefix("Store.send was called \(Self.elsewhere) Action: panel.set."))
  }

  @Test("EFF-06 EFF-07: a store used in its isolation does not warn")
  @MainActor func rightPlace() async {
    let warnings = Recorder<String>()
    let store = Store(initialState: BoardState(), warnings: warnings.warnings) {
      Board { action, _ in action == .increment ? .run { await $0(.load(true)) } : .none }
    }
    let changes = Recorder<Bool>()
    record(changes) {
      MainActor.assumeIsolated { store.isLoading }
    }
    await store.send(.increment).finish()
    store.scope(state: \.panel, action: \.panel).send(.set(1))
    sendWithoutIsolation(store)
    #expect(changes.all == [false, true])
    #expect(warnings.all.isEmpty)
  }

  /// Compiled without isolation, but run on the main actor.
  private nonisolated func sendWithoutIsolation(_ store: Store<Board>) {
    store.send(.increment, calledFrom: nil)
  }

  @Test("EFF-07 EFF-13 EFF-10: a warning about an effect outside the isolation names its origin")
  func effects() async {
    let warnings = Recorder<String>()
    let store = Self.makeStore(
      warnings, isolation: MainActor.shared, caller: MainActor.shared, delivery: .inPlace
    ) { action in
      action == .increment ? .run(name: "socket") { await $0(.fact("a")) } : .none
    }
    await store.send(.increment, calledFrom: MainActor.shared).finish()
    #expect(store.state.fact == "a" && warnings.count == 2)
    #expect(
      warnings.all[0].hasPrefix(
        "An effect sent an action \(Self.elsewhere) Action: fact. Effect \"socket\", "))
    #expect(warnings.all[0].contains("returned for: increment."))
    #expect(warnings.all[1].hasPrefix("An effect ended \(Self.elsewhere) Effect \"socket\", "))
    #expect(warnings.all[1].contains("returned for: increment."))
  }

  /// An actor that owns a store.
  private actor Owner {
    let warnings = Recorder<String>()
    private(set) lazy var store = Store(
      initialState: BoardState(), isolation: self, calledFrom: self, warnings: warnings.warnings
    ) {
      Board { action, _ in action == .increment ? .run { await $0(.load(true)) } : .none }
    }

    func use(_ changes: Recorder<Bool>) async {
      let store = store
      record(changes) { [weak self] in
        self?.preconditionIsolated()
        return store.isLoading
      }
      await store.send(.increment).finish()
    }
  }

  @Test("EFF-06 EFF-08: a store and its effects stay in the actor that made it")
  func actors() async {
    weak var gone: Owner?
    do {
      let (owner, changes) = (Owner(), Recorder<Bool>())
      gone = owner
      await owner.use(changes)
      #expect(changes.all == [false, true])
      #expect(owner.warnings.all.isEmpty)
      await owner.store.send(.increment, calledFrom: nil).finish()
      #expect(owner.warnings.count == 1)
      #expect(owner.warnings.all.first?.contains("the store's isolation, Owner.") == true)
    }
    await eventually { gone == nil }
  }

  @Test("EFF-13: an unchecked store is used from any thread")
  func unchecked() async {
    let warnings = Recorder<String>()
    let store = Store.unchecked(initialState: BoardState(), warnings: warnings.warnings) {
      Board()
    }
    await onThread { store.send(.increment) }
    await MainActor.run { _ = store.send(.increment) }
    #expect(store.state.count == 2 && warnings.all.isEmpty)
  }

  @Test("EFF-07: with strict threads, use outside the isolation traps")
  func strict() async {
    await #expect(processExitsWith: .failure) {
      let store = Store(
        initialState: BoardState(), isolation: MainActor.shared, calledFrom: MainActor.shared,
        strictThreads: true
      ) { Board() }
      await onThread { store.send(.increment, calledFrom: nil) }
    }
  }
}
