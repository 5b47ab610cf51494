import Dispatch
import EventLoop
import Foundation
import Lockstep
import LockstepClient
import LockstepServer
import LockstepStore
import Observation
import Synchronization
import Testing
import Values

private typealias BoardStore = Store<Board>

@Suite struct StoreTests {
  private func makeStore(
    _ warnings: StoreWarnings = .none,
    middleware: [any Middleware<BoardState, BoardAction>] = [],
    _ work: @escaping @Sendable (BoardAction, BoardState) -> Effect<BoardAction> = { _, _ in
      .none
    }
  ) -> BoardStore {
    .unchecked(
      initialState: BoardState(), middleware: middleware, warnings: warnings
    ) { Board(work: work) }
  }

  // MARK: Sending

  @Test("RDX-13 RDX-15 TCA-06: when send returns, the state has been replaced")
  func sendIsSynchronous() {
    let store = makeStore()
    for count in 1...100 {
      let task = store.send(.increment)
      #expect(store.state.count == count && store.count == count)
      #expect(task.reduction == .changed(Revision(count)))
    }
    #expect(store.send(.load(false)).reduction == .unchanged)
    #expect(
      store.send(.refuse).reduction == .rejected(Rejection(.refused, "the board refuses")))
    #expect(store.log.newest?.name == "refuse" && store.log.all.count == 102)
  }

  @Test("RDX-13 TCA-15: the state of a store, of its parts and of a mirror is read-only")
  func stateIsReadOnly() {
    // A key path is writable exactly where code in this file could set the property.
    let states: [AnyKeyPath] = [
      \BoardStore.state, \BoardStore.count, \ScopedStore<Panel, PanelAction>.state,
      \ScopedStore<Panel, PanelAction>.value, \BoardMirror.state, \BoardMirror.count,
    ]
    for path in states { #expect(!isWritable(path), "\(path)") }
    #expect(isWritable(\Box.value))
  }

  private final class Box { var value = 0 }

  private func isWritable(_ path: AnyKeyPath) -> Bool { "\(type(of: path))".contains("Writable") }

  @Test("RDX-18: one store is shared by every view that shows it and sends to it")
  func sharedStore() {
    let store = makeStore(middleware: [Echo()])
    let (first, second) = (
      store.scope(state: \.panel, action: \.panel), store.scope(state: \.panel, action: \.panel)
    )
    let (one, other) = (Recorder<Int>(), Recorder<Int>())
    record(one) { first.value }
    record(other) { second.value }
    first.send(.set(3))
    second.send(.set(4))
    #expect(one.all == [0, 3, 4] && other.all == [0, 3, 4] && store.panel.value == 4)
    // Views have no state of their own: a view made later shows the same state.
    #expect(store.scope(state: \.panel, action: \.panel).state == store.panel)
    #expect(store.log.all.map(\.name) == ["panel.set", "panel.set"])
  }

  @Test("EFF-05: a view's store is made from a store, retains it, and is observable")
  func storeOfView() {
    weak var store: BoardStore?
    var panel: ScopedStore<Panel, PanelAction>?
    do {
      let whole = makeStore()
      store = whole
      panel = whole.scope(state: \.panel, action: \.panel)
    }
    #expect(store != nil && (panel as Any) is any Observable)
    panel?.send(.set(7))
    #expect(store?.panel.value == 7 && panel?.value == 7)
    panel = nil
    #expect(store == nil)
  }

  @Test("RDX-15: eight threads send, and each sees its actions in the order of their arrival")
  func threadsAreSerialised() async {
    let store = makeStore()
    let observed = Recorder<Int>()
    let states = store.changes
    let watch = Task { for await state in states { observed.append(state.log.count) } }
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          await onThread {
            for number in 0..<250 {
              store.send(.add(thread * 1000 + number))
              // The thread reads its own write.
              if store.state.log.contains(thread * 1000 + number) == false {
                Issue.record("\(number) of \(thread) is not there")
              }
            }
          }
        }
      }
    }
    let log = store.state.log
    #expect(log.count == 2000)
    for thread in 0..<8 {
      #expect(log.filter { $0 / 1000 == thread } == (0..<250).map { thread * 1000 + $0 })
    }
    await eventually { observed.all.last == 2000 }
    #expect(observed.all == Array(0...2000))
    watch.cancel()
  }

  @Test("2.1-1 TCA-06: a hundred thousand actions that a feature sends itself need no deep stack")
  func selfSentActions() async {
    let store = Store.unchecked(initialState: 0) { Countdown() }
    let task = store.send(.add(100_000))
    #expect(store.state == 100_000)
    await task.finish()
  }

  /// A reducer of any state type.
  private struct Countdown: Reducer {
    func reduce(into state: inout Int, action: BoardAction) -> Effect<BoardAction> {
      guard case .add(let rest) = action, rest > 0 else { return .none }
      state += 1
      return .send(.add(rest - 1))
    }
  }

  @Test("3.1: the action that a feature returns for its start is the first")
  func start() async {
    let store = Store.unchecked(initialState: 5) { Starter() }
    #expect(store.state == 6 && store.log.all.map(\.name) == ["increment"])
  }

  private struct Starter: Reducer {
    func reduce(into state: inout Int, action: BoardAction) -> Effect<BoardAction> {
      state += 1
      return .none
    }

    var lifecycle: Lifecycle<Int, BoardAction> {
      .onStart { start in start == .first ? .increment : nil }
    }
  }

  // MARK: Observing

  @Test("RED-05 RED-11 TCA-07 RDX-17: an observer of a property is not called for other properties")
  func observation() {
    let store = makeStore()
    let (counts, loads) = (Recorder<Int>(), Recorder<Bool>())
    record(counts) { store.count }
    record(loads) { store.isLoading }
    store.send(.load(true))
    #expect(counts.all == [0] && loads.all == [false, true])
    store.send(.increment)
    store.send(.load(true))
    #expect(counts.all == [0, 1] && loads.all == [false, true])
  }

  @Test("RED-05: computed and nested properties are observed by their value")
  func computedProperties() {
    let store = makeStore()
    let (notes, values) = (Recorder<String?>(), Recorder<Int>())
    record(notes) { .some(store.panel.note) }
    record(values) { store[dynamicMember: \.panel.value] }
    store.send(.panel(.set(1)))
    #expect(values.all == [0, 1] && notes.all == [nil, nil])
    store.send(.panel(.note("a")))
    #expect(values.all == [0, 1] && notes.all == [nil, nil, "a"])
  }

  @Test("RED-17 RKT-17: the state is a snapshot, and reading it is not observed")
  func snapshot() {
    let store = makeStore()
    let reads = Recorder<Int>()
    record(reads) { store.state.count }
    let before = store.state
    store.send(.increment)
    #expect(reads.all == [0] && before.count == 0 && store.state.count == 1)
  }

  @Test("RKT-13 3.3-A: every reduction that changes something is in the changes, and no other")
  func changes() async {
    let store = makeStore { action, _ in
      action == .load(true) ? .concatenate(.send(.increment), .send(.load(false))) : .none
    }
    var states = store.changes.makeAsyncIterator()
    store.send(.load(false))
    store.send(.load(true))
    for expected in ["false 0", "true 0", "true 1", "false 1"] {
      #expect(await states.next().map { "\($0.isLoading) \($0.count)" } == expected)
    }
  }

  @Test("RKT-15 RKT-16: a sequence of a property begins with its value and omits equal ones")
  func observe() async {
    let store = makeStore()
    var loads = store.observe(\.isLoading).makeAsyncIterator()
    #expect(await loads.next() == false)
    store.send(.increment)
    store.send(.load(true))
    #expect(await loads.next() == true)
    store.send(.load(false))
    store.send(.load(true))
    store.send(.load(false))
    #expect(await loads.next() == false)
  }

  @Test("2.2-Pulse: each assignment is a pulse, also of an equal value, and nothing else is")
  func pulses() async {
    let store = makeStore()
    store.send(.alert("0"))
    var alerts = store.pulses(\.alerts).makeAsyncIterator()
    for text in ["1", "2", "3", "3"] {
      store.send(.alert(text))
      store.send(.increment)
    }
    for text in ["1", "2", "3", "3"] { #expect(await alerts.next() == text) }
  }

  // MARK: Reentrancy

  @Test("2.1-1 RKT-Reentrancy: an action sent by an observer is queued, and reported")
  func sendingFromObserver() async {
    let warnings = Recorder<String>()
    let store = makeStore(warnings.warnings) { action, _ in
      action == .increment ? .send(.add(2)) : .none
    }
    let order = Recorder<String>()
    withObservationTracking {
      _ = store.count
    } onChange: {
      order.append("enter")
      let task = store.send(.add(3))
      #expect(task.reduction == nil)
      order.append("exit \(store.state.log)")
    }
    let task = store.send(.increment)
    #expect(order.all == ["enter", "exit []"])
    #expect(store.state.log == [2, 3])
    await task.finish()
    #expect(
      warnings.all == [
        "The action add was sent by an observer of what increment changed. It waits until that is "
          + "done. Send it from an effect."
      ])
  }

  @Test("2.5: an action sent by a reducer is queued and reported, and the next action works")
  func sendingFromReducer() {
    let warnings = Recorder<String>()
    let box = Guarded<BoardStore?>(nil)
    let store = makeStore(warnings.warnings) { action, state in
      if action == .increment {
        box.value?.send(.add(1))
        // The published state is the one before the reduction.
        #expect(box.value?.state.count == 0 && state.count == 1)
      }
      return .none
    }
    box.value = store
    #expect(store.send(.increment).reduction == .changed(1))
    #expect(store.state.log == [1] && store.state.count == 1)
    #expect(
      warnings.all == [
        "The action add was sent by a reducer or a middleware while it ran. It waits until that "
          + "is done. Send it from an effect."
      ])
    #expect(store.send(.add(2)).reduction == .changed(3))
    #expect(store.state.log == [1, 2])
    box.value = nil
  }

  @Test("RDX-16: middleware gets the new state, and the action it yields follows its cause")
  func middleware() async {
    let store = makeStore(middleware: [Echo()])
    let task = store.send(.increment)
    await task.finish()
    #expect(store.state.log == [1])
    #expect(store.log.all.map(\.name) == ["increment", "add"])
    #expect(store.log.newest?.cause.parent == 1)
  }

  private struct Echo: Middleware {
    func after(
      _ action: BoardAction, state: BoardState, reduction: Reduction,
      context: MiddlewareContext<BoardAction>
    ) -> Effect<BoardAction> {
      action == .increment ? .run { [count = state.count] in await $0(.add(count)) } : .none
    }
  }

  // MARK: Effects

  @Test("EFF-06: heavy work runs in an effect, off the store's thread, and its result comes back")
  @MainActor func workOffTheStoresThread() async {
    let places = Recorder<String>()
    let board = Board { action, _ in
      places.append("reduce \(action.name) \(MainQueue.isCurrent ? "on" : "off")")
      guard action == .load(true) else { return .none }
      return .run { send in
        places.append("work \(MainQueue.isCurrent ? "on" : "off")")
        await send(.fact("done"))
      }
    }
    let warnings = Recorder<String>()
    let store = BoardStore(initialState: BoardState(), warnings: warnings.warnings) { board }
    await store.send(.load(true)).finish()
    #expect(places.all == ["reduce load on", "work off", "reduce fact on"])
    #expect(store.fact == "done" && warnings.all == [])
  }

  @Test("RED-15 EFF-01 EFF-08: observers see the state before its effect starts")
  func orderOfEffects() async {
    let order = Recorder<String>()
    let store = makeStore { action, _ in
      guard action == .load(true) else { return .none }
      return .run { send in
        order.append("effect")
        await send(.fact("a"))
        await send(.load(false))
      }
    }
    record(Recorder<Bool>()) {
      order.append("loading \(store.isLoading)")
      return store.isLoading
    }
    await store.send(.load(true)).finish()
    #expect(order.all == ["loading false", "loading true", "effect", "loading false"])
    #expect(store.fact == "a")
  }

  @Test("2.1-10: finish waits for effects, and for the effects of the actions that they sent")
  func finish() async {
    let gate = Gate()
    let store = makeStore { action, _ in
      switch action {
      case .load(true): .run { await $0(.fact("a")) }
      case .fact:
        .run {
          await gate.wait()
          await $0(.increment)
        }
      default: .none
      }
    }
    let task = store.send(.load(true))
    let finished = Guarded(false)
    let waiting = Task {
      await task.finish()
      finished.value = true
    }
    // The effect that sent the fact ends a little later than it is shown.
    await eventually { store.state.fact == "a" && store.effects.map(\.action) == ["fact"] }
    #expect(!finished.value)
    await gate.open()
    await waiting.value
    #expect(store.count == 1 && store.effects.isEmpty)
    await store.send(.increment).finish()
  }

  @Test("2.1-10 EFF-11: cancel ends the cascade, and nothing else")
  func cancel() async {
    let store = makeStore { action, _ in
      switch action {
      case .load(true): .run { await $0(.fact("a")) }
      case .fact, .logIn: .run(name: action.name) { _ in try await Task.sleep(for: .seconds(600)) }
      default: .none
      }
    }
    let other = store.send(.logIn)
    let task = store.send(.load(true))
    await eventually { store.effects.map(\.name).sorted() == ["fact", "logIn"] }
    task.cancel()
    #expect(task.isCancelled && !other.isCancelled)
    await task.finish()
    #expect(store.effects.map(\.name) == ["logIn"])
    #expect(store.cancelEffects("logIn") == 1)
    await other.finish()
    #expect(store.effects.isEmpty)
  }

  @Test("2.1-10: cancelling a waiting task cancels the effects")
  func cancelWaiter() async {
    let store = makeStore { _, _ in .run { _ in try await Task.sleep(for: .seconds(600)) } }
    let waiting = Task { await store.send(.increment).finish() }
    await eventually { !store.effects.isEmpty }
    waiting.cancel()
    await waiting.value
    #expect(store.effects.isEmpty)
  }

  @Test func `a store's effects sleep by Swift's clock, a daemon's by libuv's`() async {
    let slept = Guarded(false)
    let store = makeStore { _, _ in
      .run { _ in
        @Dependency(\.clock) var clock
        #expect(clock is ContinuousClock)
        try await clock.sleep(for: .milliseconds(1))
        slept.value = true
      }
    }
    await store.send(.increment).finish()
    #expect(slept.value)
    #expect(DependencyValues.live.clock is LoopClock)
  }

  @Test("2.1: a named task is cancelled by its name")
  func taskCancellation() async {
    let store = makeStore { action, _ in
      switch action {
      case .load(true):
        .run { send in
          try? await withTaskCancellation(id: "wait") { try await Task.sleep(for: .seconds(600)) }
          await send(.fact("cancelled"))
        }
      case .load(false): .cancel(id: "wait")
      default: .none
      }
    }
    let task = store.send(.load(true))
    await eventually {
      store.send(.load(false))
      return store.fact == "cancelled"
    }
    await task.finish()
  }

  @Test("2.1: an effect cancels effects by name, and observers run in the store's isolation")
  @MainActor func taskCancelsEffects() async {
    let board = Board { action, _ in
      switch action {
      case .load(true):
        .concatenate(
          .run { _ in try await Task.sleep(for: .seconds(600)) }.cancellable(id: "work"),
          .send(.fact("cancelled")))
      case .load(false): .run { _ in await Task.cancel(id: "work") }
      default: .none
      }
    }
    let warnings = Recorder<String>()
    let store = BoardStore(initialState: BoardState(), warnings: warnings.warnings) { board }
    let facts = Recorder<String?>()
    record(facts) { MainActor.assumeIsolated { .some(store.fact) } }
    let task = store.send(.load(true))
    await store.send(.load(false)).finish()
    await task.finish()
    #expect(facts.all == [nil, "cancelled"] && store.effects.isEmpty && warnings.all == [])
  }

  @Test("2.1-6: an error thrown by an effect is reported with its origin")
  func unhandledErrors() async {
    let warnings = Recorder<String>()
    let store = makeStore(warnings.warnings) { _, _ in
      .run(name: "fetch") { _ in throw Rejection(.refused, "no such host") }
    }
    await store.send(.increment).finish()
    #expect(warnings.count == 1)
    #expect(warnings.all[0].contains("no such host") && warnings.all[0].contains("increment"))
  }

  @Test("2.1: the effects of a store are cancelled when it is freed")
  func lifetime() async {
    let ended = Guarded(false)
    weak var gone: BoardStore?
    do {
      let store = makeStore { _, _ in
        .run { _ in
          try? await Task.sleep(for: .seconds(600))
          ended.value = true
        }
      }
      gone = store
      store.send(.increment)
    }
    #expect(gone == nil)
    await eventually { ended.value }
  }

  @Test("RDX-15: reducers get the real time")
  func liveDate() throws {
    let store = makeStore()
    let before = Date().timeIntervalSince1970
    store.send(.increment)
    let time = Double(try #require(store.log.newest).time.nanoseconds) / 1e9
    #expect(time >= before - 1 && time <= Date().timeIntervalSince1970 + 1)
    let fixed = BoardStore.unchecked(initialState: BoardState()) {
      Board()
    } withDependencies: {
      $0.date = .constant(Timestamp(nanoseconds: 5))
    }
    fixed.send(.increment)
    #expect(fixed.log.newest?.time == Timestamp(nanoseconds: 5))
  }

  // MARK: Scopes

  @Test("TCA-12: a scoped store shows and sends its part, and is not called for others")
  func scope() {
    let store = makeStore()
    let panel = store.scope(state: \.panel, action: \.panel)
    let (values, notes) = (Recorder<Int>(), Recorder<String?>())
    record(values) { panel.value }
    record(notes) { .some(panel.note) }
    panel.send(.set(5))
    #expect(store.panel.value == 5 && panel.state.value == 5)
    store.send(.increment)
    store.send(.panel(.note("a")))
    #expect(values.all == [0, 5] && notes.all == [nil, "a"])
    #expect(store.log.all.map(\.name) == ["panel.set", "increment", "panel.note"])
  }

  @Test("TCA-12: scoped entries appear and disappear")
  func scopeOfEntries() {
    let store = makeStore()
    let row = store.scope(state: \.rows, id: 7, action: \.row)
    let login = store.scope(state: \.login, action: \.login)
    let rows = Recorder<Int?>()
    record(rows) { .some(row.value) }
    #expect(row.state == nil && login.state == nil)
    store.send(.addRow(7))
    row.send(.set(3))
    store.send(.addRow(8))
    store.send(.removeRow(7))
    #expect(rows.all == [nil, 0, 3, nil])
    store.send(.logIn)
    login.send(.set(2))
    #expect(login.state == Panel(value: 2) && store.state.login?.value == 2)
  }
}

/// The queue of the main actor, which any thread may drain.
private enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let mark = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: mark, value: true)
    return mark
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }
}

/// Runs `body` on a new thread.
func onThread(_ body: @escaping @Sendable () -> Void) async {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      body()
      continuation.resume()
    }
  }
}

/// A value protected by a mutex.
final class Guarded<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>

  init(_ value: Value) { mutex = Mutex(value) }

  var value: Value {
    get { mutex.withLock { $0 } }
    set { mutex.withLock { $0 = newValue } }
  }
}

/// Tasks wait at a gate until it opens.
actor Gate {
  private var isOpen = false
  private var waiters: [CheckedContinuation<Void, Never>] = []

  func open() {
    isOpen = true
    for waiter in waiters { waiter.resume() }
    waiters = []
  }

  func wait() async {
    if isOpen { return }
    await withCheckedContinuation { waiters.append($0) }
  }
}
