import Lockstep
import LockstepTesting
import Testing
import Values

@Suite struct SyncTestStoreTests {
  private func store(
    seed: UInt64, mirrors: Int = 3, optimistic: Bool = false,
    _ misfortunes: Misfortunes = .some, effectsMayWait: Bool = false,
    backend: any Backend = FakeBackend()
  ) throws -> SyncTestStore<Groceries> {
    try SyncTestStore(
      initialState: SyncMap(), middleware: [NoSweets()], seed: seed, mirrors: mirrors,
      optimistic: optimistic, misfortunes: misfortunes, effectsMayWait: effectsMayWait
    ) {
      Groceries()
    } withDependencies: {
      $0.backend = backend
    }
  }

  @Test(arguments: 0..<10)
  func `a bad network withholds nothing from any mirror in the end`(portion: UInt64) throws {
    for seed in (portion * 20 + 1)...(portion * 20 + 20) {
      let store = try store(seed: seed)
      let load = try store.send(.load, from: 0)
      let add = try store.send(.add("tea", 1), from: 1)
      try store.run(steps: 200)
      // Otherwise the action could still be in flight.
      try store.settle()
      try store.advance(by: .seconds(2))
      try store.settle()
      #expect(store.outcome(of: load) == .accepted)
      #expect(store.outcome(of: add) == .reduced)
      #expect(store.state.count == 4)
      for client in 0..<3 { #expect(store.mirror(client).state == store.state) }
      #expect(store.runningEffects.isEmpty)
    }
  }

  @Test func `whatever happens to the daemon, every mirror is true`() throws {
    for seed in UInt64(1)...60 {
      let store = try store(seed: seed, .all)
      for step in 0..<20 {
        try store.send(step.isMultiple(of: 3) ? .load : .add("tea", step), from: step % 3)
        try store.run(steps: 20)
      }
      try store.advance(by: .seconds(5))
      try store.settle()
      for client in 0..<3 { #expect(store.mirror(client).state == store.state) }
    }
  }

  @Test func `one seed has one trace, and another seed has another`() throws {
    func trace(_ seed: UInt64) throws -> UInt64 {
      let store = try store(seed: seed)
      try store.send(.load, from: 0)
      try store.send(.tick, from: 2)
      try store.run(steps: 300)
      try store.advance(by: .seconds(3))
      try store.settle()
      return store.trace
    }
    #expect(try trace(1) == trace(1))
    #expect(try trace(1) != trace(2))
  }

  @Test func `a client learns the outcome of its action`() throws {
    let store = try store(seed: 3)
    let swallowed = try store.send(.add("sugar", 1), from: 0)
    let rejected = try store.send(.add("", 1), from: 0)
    let unchanged = try store.send(.clear, from: 0)
    #expect(store.outcome(of: swallowed) == nil)
    try store.settle()
    #expect(store.outcome(of: swallowed) == .swallowed)
    #expect(store.outcome(of: rejected) == .rejected(Rejection(.refused, "no name")))
    #expect(store.outcome(of: unchanged) == .unchanged)
    #expect(store.state.isEmpty)
  }

  @Test func `a timer fires once in each interval`() throws {
    let store = try store(seed: 4, .none)
    try store.send(.tick, from: 1)
    try store.settle()
    #expect(store.runningEffects.map(\.name) == ["timer"])
    try store.advance(by: .seconds(10))
    try store.settle()
    #expect(store.state["ticks"] == 10)
    #expect(store.mirror(2).state?["ticks"] == 10)
  }

  @Test func `settling takes no time without faults`() throws {
    let store = try store(seed: 5, .none)
    try store.send(.load, from: 0)
    let before = store.now
    try store.settle()
    #expect(store.now == before)
    #expect(store.runningEffects.map(\.name) == ["load"])
    #expect(store.state.isEmpty)
  }

  // MARK: Optimistic actions

  @Test func `an optimistic action shows at once, and the daemon's answer replaces it`() throws {
    let store = try store(seed: 6, optimistic: true, .none)
    try store.settle()
    let tea = try store.send(.add("tea", 2), from: 0, optimistically: true)
    let milk = try store.send(.add("milk", 1), from: 0, optimistically: true)
    let mirror = store.mirror(0)
    #expect(mirror.state?["tea"] == 2 && mirror.state?["milk"] == 1)
    #expect(mirror.confirmed?.isEmpty == true)
    #expect(mirror.pending == [tea, milk])
    #expect(store.mirror(1).state?.isEmpty == true && store.state.isEmpty)
    try store.settle()
    #expect(store.outcome(of: tea) == .reduced)
    #expect(store.state["tea"] == 2 && store.state["milk"] == 1)
    for client in 0..<3 {
      #expect(store.mirror(client).state == store.state && store.mirror(client).pending.isEmpty)
    }
  }

  @Test func `what the daemon decides differently disappears`() throws {
    let store = try store(seed: 7, optimistic: true, .none)
    try store.settle()
    // The daemon's middleware swallows it, of which a client knows nothing.
    let sugar = try store.send(.add("sugar", 1), from: 0, optimistically: true)
    // The reducer rejects it, here and there.
    let unnamed = try store.send(.add("", 1), from: 0, optimistically: true)
    #expect(store.mirror(0).state?["sugar"] == 1)
    #expect(store.mirror(0).pending == [sugar, unnamed])
    try store.settle()
    #expect(store.mirror(0).state?.isEmpty == true)
    #expect(store.mirror(0).pending.isEmpty)
    #expect(store.outcome(of: sugar) == .swallowed)
    #expect(store.outcome(of: unnamed) == .rejected(Rejection(.refused, "no name")))
  }

  struct Tally: Reducer {
    @Action enum Action: Equatable, Sendable { case count }

    func reduce(into state: inout Int, action: Action) -> Effect<Action> {
      state += 1
      return .none
    }
  }

  @Test func `what shows is a confirmed state with the pending actions, whatever happens`() throws {
    var (shown, crashes) = (0, 0)
    for seed in UInt64(1)...60 {
      let store = try SyncTestStore(
        initialState: 0, seed: seed, mirrors: 3, optimistic: true, misfortunes: .all
      ) { Tally() }
      for step in 1...30 {
        let (client, isOptimistic) = (step % 3, !step.isMultiple(of: 4))
        let action = try store.send(.count, from: client, optimistically: isOptimistic)
        let mirror = store.mirror(client)
        if isOptimistic, mirror.isLive { #expect(mirror.pending.last == action) }
        if let state = mirror.state, let confirmed = mirror.confirmed {
          #expect(state == confirmed + mirror.pending.count)
          shown += mirror.pending.count
        }
        try store.run(steps: 15)
      }
      crashes += store.counts["crashes"] ?? 0
      try store.settle()
      for client in 0..<3 {
        #expect(store.mirror(client).state == store.state && store.mirror(client).pending.isEmpty)
      }
    }
    #expect(shown > 1000 && crashes > 10, "\(shown) and \(crashes)")
  }

  struct Tickets: Reducer {
    @Dependency(\.uuid) private var uuid
    @Action enum Action: Equatable, Sendable { case draw }

    func reduce(into state: inout String, action: Action) -> Effect<Action> {
      state = "\(uuid())"
      return .none
    }
  }

  @Test func `what a mirror draws is not drawn from the daemon's dependencies`() throws {
    for isOptimistic in [false, true] {
      let store = try SyncTestStore(
        initialState: "", seed: 8, optimistic: true, misfortunes: .none
      ) { Tickets() }
      try store.settle()
      for _ in 0..<3 { try store.send(.draw, from: 0, optimistically: isOptimistic) }
      #expect(store.mirror(0).state?.isEmpty == !isOptimistic)
      try store.settle()
      #expect(store.state.hasSuffix("-000000000002"), "\(store.state)")
      #expect(store.mirror(0).state == store.state)
    }
  }

  // MARK: Escapes

  @Test(arguments: Escape.allCases, 1...5)
  func `work outside the seed's control fails the test`(escape: Escape, seed: UInt64) throws {
    let store = try store(seed: seed, .none, backend: EscapingBackend(escape: escape))
    try store.send(.load, from: 0)
    let failure = try #require(throws: SyncTestFailure.self) { try store.run(steps: 200) }
    #expect(failure.message.contains("\"load\" (SimulatorTests/Groceries.swift:"))
    #expect(failure.message.contains("returned for load) has escaped the simulation"))
    #expect(failure.message.contains("@Dependency(\\.clock)"))
    #expect(failure.description.contains("with seed: \(seed) and the same calls"))
  }

  /// A reactor that iterates its stream of actions.
  struct Doubling: Reactor {
    @Action enum Action: Equatable, Sendable { case count }
    var initialState: Int { 0 }

    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
      ReactorStream { send in
        for try await action in action {
          await send(action)
          await send(action)
        }
      }
    }

    func reduce(state: Int, mutation: Action) -> Int { state + 1 }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `a stream that a reactor iterates stays in the seed's control`(seed: UInt64) throws {
    // The stream waits for actions as long as the reactor lives.
    let store = try SyncTestStore(initialState: 0, seed: seed, effectsMayWait: true) {
      Doubling().reducer
    }
    for client in [0, 1, 0] { try store.send(.action(.count), from: client) }
    try store.settle()
    #expect(store.state == 6)
    for client in 0..<2 { #expect(store.mirror(client).state == 6) }
  }

  @Test func `work outside the seed's control is detected when it returns, beside a timer too`()
    throws
  {
    let store = try store(seed: 6, .none, backend: EscapingBackend(escape: .detachedSend))
    try store.send(.tick, from: 0)
    try store.run(steps: 100)
    try store.send(.loadBeside, from: 0)
    #expect(throws: SyncTestFailure.self) {
      while true { try store.run(steps: 10) }
    }
  }

  @Test func `effects may wait for the test's input if the test permits it`() throws {
    let backend = FedBackend()
    let store = try store(seed: 7, .none, effectsMayWait: true, backend: backend)
    try store.send(.load, from: 0)
    try store.settle()
    #expect(store.state.isEmpty)
    backend.feed(["tea"])
    try store.settle()
    #expect(store.state["tea"] == 1)

    let strict = try self.store(seed: 7, .none, backend: FedBackend())
    try strict.send(.load, from: 0)
    #expect(throws: SyncTestFailure.self) { try strict.settle() }
  }

  @Test func `an effect that never pauses is reported by name`() throws {
    let store = try store(seed: 8, .none)
    try store.send(.spin, from: 0)
    let failure = try #require(throws: SyncTestFailure.self) { try store.settle() }
    #expect(failure.message.contains("\"spin\" (SimulatorTests/Groceries.swift:"))
  }
}
