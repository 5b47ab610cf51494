import Foundation
import Lockstep
import LockstepClient
import LockstepStore
import Observation
import Synchronization
import Testing
import Values

extension BoardState {
  /// Counts the calls of the functions of selectors.
  final class Calls: Sendable {
    private let number = Atomic(0)

    func add() { number.add(1, ordering: .relaxed) }

    /// The calls since the last look.
    func take() -> Int { number.exchange(0, ordering: .relaxed) }
  }
}

@Suite struct SelectorTests {
  private typealias Calls = BoardState.Calls

  // MARK: Without a store

  @Test("RTK createSelector: computed again only when an input has changed")
  func inputs() {
    let calls = Calls()
    let selector = Selector(\BoardState.count, \BoardState.fact) {
      calls.add()
      return "\($0) \($1 ?? "-")"
    }
    let select = selector.remembering()
    var state = BoardState()
    #expect(select(state) == "0 -" && calls.take() == 1)
    state.isLoading = true
    state.rows[1] = Panel()
    #expect(select(state) == "0 -" && calls.take() == 0)
    state.fact = "a"
    #expect(select(state) == "0 a" && calls.take() == 1)
    #expect(select(state) == "0 a" && calls.take() == 0)
    // Computed anew, without remembering.
    #expect(selector(state) == "0 a" && calls.take() == 1)
  }

  @Test("RTK createSelector: a part that is equal and stored elsewhere has not changed")
  func equalParts() {
    let calls = Calls()
    let select = Selector(\BoardState.log) { log in
      calls.add()
      return log.count
    }.remembering()
    var state = BoardState()
    state.log = [1, 2]
    #expect(select(state) == 2)
    state.log = [1] + [2]
    #expect(select(state) == 2 && calls.take() == 1)
  }

  @Test("RTK createSelector: of selectors, computed again when what they select has changed")
  func composition() {
    let (calls, outer) = (Calls(), Calls())
    let parity = Selector(\BoardState.count) { count in
      calls.add()
      return count % 2
    }
    let log = Selector(\BoardState.log)
    let select = Selector(of: parity, log) { parity, log in
      outer.add()
      return parity + log.count
    }.remembering()
    var state = BoardState()
    #expect(select(state) == 0 && calls.take() == 1 && outer.take() == 1)
    state.count = 2
    #expect(select(state) == 0 && calls.take() == 1 && outer.take() == 0)
    state.count = 3
    state.log = [7]
    #expect(select(state) == 2 && calls.take() == 1 && outer.take() == 1)
  }

  @Test("RTK createSelector: over 100,000 rows a change costs what has changed")
  func foldingCost() {
    let calls = Calls()
    let large = Selector.filter(\BoardState.rows) { _, panel in
      calls.add()
      return panel.value > 10
    }
    let count = Selector.count(of: \BoardState.rows) { id, _ in
      calls.add()
      return id < 50
    }
    let (rows, number) = (large.remembering(), count.remembering())
    var state = BoardState()
    for id in 0..<100_000 { state.rows[id] = Panel() }
    #expect(rows(state).isEmpty && number(state) == 50)
    #expect(calls.take() == 200_000)
    state.rows[7]?.value = 11
    state.rows[70_000]?.value = 12
    state.rows[8] = nil
    state.rows[9]?.value = 1
    state.count += 1
    #expect(rows(state).map(\.key).sorted() == [7, 70_000] && number(state) == 49)
    // At most the old and the new of four rows, for each.
    #expect(calls.take() <= 12)
    #expect(rows(state).count == 2 && number(state) == 49 && calls.take() == 0)
  }

  @Test(
    "a fold equals what is computed anew, whatever states come in what order", arguments: 0..<20)
  func foldingProperty(seed: UInt64) {
    var random = SplitMix64(seed)
    let odd = Selector.filter(\BoardState.rows) { $1.value % 2 != 0 }
    let sum = Selector(folding: \BoardState.rows, into: 0) {
      $0 += $1 &* $2.value
    } remove: {
      $0 -= $1 &* $2.value
    }
    let (rows, total) = (odd.remembering(), sum.remembering())
    var states = [BoardState()]
    for _ in 0..<200 {
      var state = states[Int(random.next() % UInt64(states.count))]
      for _ in 0..<random.next() % 20 {
        let id = Int(random.next() % 60)
        switch random.next() % 4 {
        case 0: state.rows[id] = nil
        case 1: state.rows.removeAll()
        default: state.rows[id] = Panel(value: Int(random.next() % 5))
        }
      }
      states.append(state)
      #expect(rows(state) == odd(state) && total(state) == sum(state))
      let expected = state.rows.filter { $0.value.value % 2 != 0 }
      #expect(rows(state).count == expected.count)
      for (id, panel) in expected { #expect(rows(state)[id] == panel) }
    }
  }

  // MARK: With a store

  @Test("RTK createSelector: the observers of a store share what is computed")
  @MainActor func sharing() async {
    let calls = Calls()
    let selector = Selector(\BoardState.count) { count in
      calls.add()
      return count * 2
    }
    let store = Store(initialState: BoardState()) { Board() }
    let streams = (0..<100).map { _ in store.observe(selector) }
    #expect(store[selector] == 0 && calls.take() == 1)
    store.send(.increment)
    store.send(.load(true))
    #expect(store[selector] == 2 && calls.take() == 1)
    for stream in streams {
      var values = stream.makeAsyncIterator()
      #expect(await values.next(isolation: MainActor.shared) == 2)
    }
  }

  @Test("RDX-17: tracked code is not called when what is selected is the same")
  @MainActor func tracking() {
    let selector = Selector(\BoardState.count) { $0 / 2 }
    let store = Store(initialState: BoardState()) { Board() }
    let halves = Recorder<Int>()
    record(halves) { [weak store] in store?[selector] }
    for _ in 0..<4 { store.send(.increment) }
    #expect(halves.all == [0, 1, 2])
  }

  @Test("an observer that is registered after a change was told is told of the next")
  func lateRegistration() {
    let (observers, calls) = (StateObservers<BoardState>(), Calls())
    let states = (0..<3).map { count in
      var state = BoardState()
      state.count = count
      return state
    }
    withObservationTracking {
      #expect(observers.read(\.count) { states[0] } == 0)
      // As on another thread: the observer is not registered yet.
      observers.tell(from: states[0], to: states[1])
    } onChange: {
      calls.add()
    }
    #expect(calls.take() == 0)
    observers.tell(from: states[1], to: states[2])
    #expect(calls.take() == 1)
  }

  @Test("a selector that nobody uses any more is forgotten")
  @MainActor func release() async {
    let store = Store(initialState: BoardState()) { Board() }
    weak var last: Selector<BoardState, Int>?
    for number in 0..<1000 {
      let selector = Selector(\BoardState.count) { $0 + number }
      last = selector
      var values = store.observe(selector).makeAsyncIterator()
      #expect(await values.next(isolation: MainActor.shared) == number)
    }
    store.send(.increment)
    #expect(last == nil)
  }

  @Test("a row is observed apart: the others' changes are not compared with it")
  @MainActor func rows() async {
    var state = BoardState()
    for id in 0..<1000 { state.rows[id] = Panel() }
    let store = Store(initialState: state) { Board() }
    var absent = store.observe(\.rows, id: 5000).makeAsyncIterator()
    #expect(await absent.next(isolation: MainActor.shared) == .some(nil))
    var rows = (0..<1000).map { store.observe(\.rows, id: $0).makeAsyncIterator() }
    for id in 0..<1000 {
      #expect(await rows[id].next(isolation: MainActor.shared) == Panel())
    }
    store.send(.row(7, .set(3)))
    store.send(.row(8, .set(4)))
    store.send(.row(8, .set(0)))
    store.send(.removeRow(9))
    store.send(.addRow(5000))
    store.send(.load(true))
    #expect(await rows[7].next(isolation: MainActor.shared) == Panel(value: 3))
    #expect(await rows[8].next(isolation: MainActor.shared) == Panel(value: 0))
    #expect(await rows[9].next(isolation: MainActor.shared) == .some(nil))
    #expect(await absent.next(isolation: MainActor.shared) == Panel())
    // The next value of every other row is that of its own change.
    for id in 10..<1000 { store.send(.row(id, .set(id))) }
    for id in 10..<1000 {
      #expect(await rows[id].next(isolation: MainActor.shared) == Panel(value: id))
    }
  }

  @Test(
    "1,000 observers of 1,000 or 1,000,000 rows: a change is compared with its own row, and read once",
    arguments: [1, 1000])
  func rowsCost(step: Int) async {
    // Not on the main actor, which other tests need.
    let rows = SyncMap(uniqueKeysWithValues: (0..<1000 * step).map { ($0, Compared(value: 0)) })
    let store = Store(initialState: Compared.State(rows: rows)) { Compared.Writer() }
    let streams = (0..<1000).map { store.observe(\.rows, id: $0 * step) }
    _ = Compared.comparisons.take()
    store.send(.set(500 * step, 1))
    // A node of the map with its entries, and not each observed row.
    #expect(Compared.comparisons.take() < 100)
    var values = streams[500].makeAsyncIterator()
    #expect(await values.next()?.map(\.value) == 1)
  }

  // MARK: With a daemon

  @Test("RTK createSelector RDX-17: selectors and rows of a mirror, until the connection ends")
  func mirror() async throws {
    let even = Selector.filter(\BoardState.rows) { $1.value % 2 == 0 }
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      var values = mirror.observe(even).makeAsyncIterator()
      var row = mirror.observe(\.rows, id: 2).makeAsyncIterator()
      #expect(await values.next()?.isEmpty == true)
      #expect(await row.next() == .some(nil))
      try await mirror.send(.addRow(2))
      #expect(await values.next()?.count == 1)
      #expect(await row.next() == Panel())
      #expect(mirror[even].count == 1)
      try await mirror.send(.row(2, .set(1)))
      #expect(await values.next()?.isEmpty == true)
      #expect(await row.next() == Panel(value: 1))
      mirror.connection.close()
      #expect(await values.next() == nil)
      #expect(await row.next() == nil)
    }
  }

  @Test("an observer that has read what it is not told of is told when that has changed")
  @MainActor func readAhead() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      // Not on this actor, which is not left below: the mirror moves on, and tells nothing yet.
      let other = try await Task.detached { try await BoardMirror.connect(.at(socket)) }.value
      let loads = Recorder<Bool>()
      other.post(.load(true))
      while !mirror.state.isLoading { sched_yield() }
      record(loads) { [weak mirror] in mirror?.isLoading }
      #expect(loads.all == [true])
      other.post(.load(false))
      while mirror.state.isLoading { sched_yield() }
      await eventually { loads.all == [true, false] }
    }
  }
}

/// A row that counts how often it is compared.
private struct Compared: HandWritten, Equatable {
  static let comparisons = BoardState.Calls()

  var value = 0

  static var parts: [any FieldCoding<Compared>] { [Coded(0, "value", \Compared.value)] }

  func isSame(as other: Compared) -> Bool {
    Self.comparisons.add()
    return value == other.value
  }

  struct State: HandWritten {
    var rows: SyncMap<Int, Compared> = [:]

    static var parts: [any FieldCoding<State>] { [Coded(0, "rows", \State.rows)] }
  }

  enum Write: WrittenAction {
    case set(Int, Int)

    var name: String { "set" }
    var words: [String] {
      if case .set(let id, let value) = self { ["\(id)", "\(value)"] } else { [] }
    }
    init?(words: ArraySlice<Substring>) {
      let numbers = words.compactMap { Int($0) }
      guard numbers.count == 2 else { return nil }
      self = .set(numbers[0], numbers[1])
    }
    static var allCasePaths: Void { () }
  }

  struct Writer: Reducer {
    typealias State = Compared.State
    typealias Action = Write

    func reduce(into state: inout State, action: Write) throws(Rejection) -> Effect<Write> {
      if case .set(let id, let value) = action { state.rows[id]?.value = value }
      return .none
    }
  }
}
