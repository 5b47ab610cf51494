import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite("Reducers: children")
struct ChildReducerTests {
  // MARK: forEach

  @Test("testElementAction 2.1.9, TCA-09: a row reduces before its parent")
  func childFirst() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    #expect(bench.send(.row(2, .start)) == [.changed(1)])
    #expect(bench.core.state.log == ["2 start behind start"])
    #expect(bench.core.state.rows[2]?.log == ["start"] && bench.core.state.rows[1]?.log == [])
  }

  @Test(
    "testNavigation_cancelID_childCannotCancelSibling 2.1.4: a cancel in a row is local to it")
  func localNames() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    bench.send(.start)
    bench.send(.row(1, .start))
    bench.send(.row(2, .start))
    bench.send(.row(1, .stop))
    #expect(bench.core.runningEffects.map(\.sequence) == [1, 3])
  }

  @Test(
    "testNavigation_cancelID_parentCancellation 2.1.4: a parent's cancel reaches all below it")
  func parentCancels() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    bench.send(.start)
    for id in [1, 2] { bench.send(.row(id, .start)) }
    bench.send(.row(2, .open))
    bench.send(.row(2, .detail("start")))
    #expect(bench.running == ["board", "row", "row", "detail"])
    bench.send(.cancel)
    #expect(bench.running == [] && bench.cancelled == ["board", "row", "row", "detail"])
    #expect((1...5).allSatisfy { bench.core.isDone($0) })
    // The table is empty: a new effect of the row is the only one.
    bench.send(.row(1, .start))
    bench.send(.row(1, .stop))
    #expect(bench.running == [] && bench.cancelled.count == 5)
  }

  @Test("testAutomaticEffectCancellation 2.1.9: removing a row cancels its effects, and no other's")
  func removal() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    bench.send(.row(1, .start))
    bench.send(.row(2, .start))
    bench.send(.remove(1))
    #expect(bench.core.runningEffects.map(\.sequence) == [2] && bench.cancelled == ["row"])
    #expect(bench.core.isDone(1) && !bench.core.isDone(2))
  }

  @Test func `other contents end the effects of children that are gone, and no others`() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    bench.send(.start)
    for id in [1, 2] { bench.send(.row(id, .start)) }
    let former = bench.core.state
    bench.send(.row(1, .open))
    bench.send(.row(1, .detail("start")))
    #expect(bench.running == ["board", "row", "row", "detail"])
    bench.change { core in
      let reduction = core.replaceState(by: former)
      #expect(reduction == .changed(core.revision))
    }
    #expect(bench.running == ["board", "row", "row"] && bench.cancelled == ["detail"])
    #expect(bench.core.state == former && bench.core.log.newest?.name == "jump")
    let revision = bench.core.revision
    bench.change { core in
      let again = core.replaceState(by: former)
      #expect(again == .unchanged && core.revision == revision)
      _ = core.replaceState(by: Board.State(rows: 2))
    }
    #expect(bench.core.runningEffects.map(\.sequence) == [1, 3])
    // What it does next makes the patch of that alone.
    let before = bench.core.state
    var (last, expected) = (CBOREncoder(), CBOREncoder())
    _ = bench.core.send(.row(2, .stop), patch: &last)
    #expect(bench.core.state.encodeDifference(from: before, into: &expected))
    #expect(last.bytes == expected.bytes)
  }

  @Test("2.1.9: a row that is removed by its own action starts no effect")
  func removalByOwnAction() {
    let reducer = Reduce<Board.State, Board.Action> { state, action in
      if case .row(let id, .start) = action { state.rows[id] = nil }
      return .none
    }.forEach(\.rows, action: \.row) { Row() }
    var bench = Bench(Board.State(rows: 1), reducer)
    bench.send(.row(1, .start))
    #expect(bench.started == [] && bench.core.effectCount == 0 && bench.core.isDone(1))
  }

  @Test(
    "testGrandchildEffectCancellation 2.1.4: removing a row cancels the effects of its own child too"
  )
  func grandchildren() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    for id in [1, 2] {
      bench.send(.row(id, .open))
      bench.send(.row(id, .detail("start")))
    }
    #expect(bench.running == ["detail", "detail"])
    bench.send(.row(2, .close))
    #expect(bench.core.runningEffects.map(\.sequence) == [2])
    bench.send(.remove(1))
    #expect(bench.running == [] && bench.core.effectCount == 0)
  }

  @Test("2.1.4: cancelling in a row reaches its own child, and no other's")
  func childOfRow() {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    for id in [1, 2] {
      bench.send(.row(id, .open))
      bench.send(.row(id, .start))
      bench.send(.row(id, .detail("start")))
    }
    bench.send(.row(1, .stop))
    #expect(bench.core.runningEffects.map(\.sequence) == [5, 6])
  }

  @Test("2.1.4: a child's effect does not keep its parent from starting one with the same key")
  func unlessRunningInChild() {
    let reducer = CombineReducers {
      Board()
      Reduce<Board.State, Board.Action> { _, action in
        action == .remove(9) ? .job("once").unlessRunning(id: "work") : .none
      }
    }
    var bench = Bench(Board.State(rows: 1), reducer)
    bench.send(.row(1, .start))
    for _ in 1...2 { bench.send(.remove(9)) }
    #expect(bench.running == ["row", "once"])
  }

  @Test("2.1.4: a parent's cancel drops effects that wait for a throttle interval in a child")
  func throttledChild() {
    struct Slow: Reducer {
      func reduce(into state: inout Row.State, action: Row.Action) -> Effect<Row.Action> {
        let name = "work \(state.log.count)"
        state.log.append(name)
        return .job(name).throttle(id: "work", for: .seconds(1), latest: true)
      }
    }
    let reducer = Reduce<Board.State, Board.Action> { _, action in
      action == .cancel ? .cancel(id: "work") : .none
    }.forEach(\.rows, action: \.row) { Slow() }
    var bench = Bench(Board.State(rows: 1), reducer)
    for _ in 1...2 { bench.send(.row(1, .start)) }
    #expect(bench.running == ["work 0"])
    bench.send(.cancel)
    bench.finish("throttle")
    #expect(bench.running == [] && bench.started == ["throttle", "work 0"])
    bench.send(.row(1, .start))
    #expect(bench.running == ["work 2"])
  }

  @Test("2.1.4: Task.cancel(id:) in a row's effect reaches the effects of that row alone")
  func taskCancelInRow() async {
    struct Job: Reducer {
      func reduce(into state: inout Row.State, action: Row.Action) -> Effect<Row.Action> {
        switch action {
        case .start: .never("work").cancellable(id: "work")
        case .stop: .run { _ in await Task.cancel(id: "work") }
        default: .none
        }
      }
    }
    let reducer = Reduce<Board.State, Board.Action> { _, action in
      action == .cancel ? .run { _ in await Task.cancel(id: "work") } : .none
    }.forEach(\.rows, action: \.row) { Job() }
    let store = TestStore(initialState: Board.State(rows: 1, 2, 3)) { reducer }
    for id in 1...3 { await store.send(.row(id, .start)) }
    await store.send(.row(2, .stop))
    #expect(store.runningEffects.map(\.sequence) == [1, 3])
    await store.send(.cancel)
    #expect(store.runningEffects == [])
    await store.finish()
  }

  // MARK: Scope

  /// Two boards of the same type, and a parent of both that uses the same key for its own work.
  private struct Desk: Reducer {
    struct State: Described {
      var left = Board.State(rows: 1, 2)
      var right = Board.State(rows: 1, 2)
    }

    enum Action: DescribedAction, CasePathable {
      case left(Board.Action)
      case right(Board.Action)
      case mirrored(Board.Action)
      case start, stopAll

      struct AllCasePaths: Sendable {
        var left: CasePath<Action, Board.Action> {
          CasePath(embed: { .left($0) }, extract: { if case .left(let a) = $0 { a } else { nil } })
        }
        var right: CasePath<Action, Board.Action> {
          CasePath(
            embed: { .right($0) }, extract: { if case .right(let a) = $0 { a } else { nil } })
        }
        var mirrored: CasePath<Action, Board.Action> {
          CasePath(
            embed: { .mirrored($0) }, extract: { if case .mirrored(let a) = $0 { a } else { nil } })
        }
      }
      static var allCasePaths: AllCasePaths { AllCasePaths() }
    }

    var body: some Reducer<State, Action> {
      Scope(state: \.left, action: \.left) { Board() }
      Scope(state: \.right, action: \.right) { Board() }
      // A second feature on a part that already has one.
      Scope(state: \.right, action: \.mirrored) { Board() }
      Reduce<State, Action> { _, action in
        switch action {
        case .start: .job("desk").cancellable(id: "work")
        case .stopAll: .cancel(id: "work")
        case .left, .right, .mirrored: .none
        }
      }
    }
  }

  @Test(
    "EffectCancellationIsolationTests 2.1.4, TCA-12: two scopes of one feature, and their rows")
  func scopesOfOneFeature() {
    func bench() -> Bench<Desk> {
      var bench = Bench(Desk.State(), Desk())
      bench.send(.left(.row(1, .start)))
      bench.send(.right(.row(1, .start)))
      bench.send(.left(.start))
      bench.send(.right(.start))
      bench.send(.start)
      return bench
    }
    func left(after action: Desk.Action) -> [UInt64] {
      var bench = bench()
      bench.send(action)
      return bench.core.runningEffects.map(\.sequence)
    }
    #expect(left(after: .left(.row(1, .stop))) == [2, 3, 4, 5])
    #expect(left(after: .right(.row(1, .stop))) == [1, 3, 4, 5])
    #expect(left(after: .left(.remove(1))) == [2, 3, 4, 5])
    #expect(left(after: .right(.remove(1))) == [1, 3, 4, 5])
    #expect(left(after: .left(.cancel)) == [2, 4, 5])
    #expect(left(after: .mirrored(.cancel)) == [1, 2, 3, 4, 5])
    #expect(left(after: .stopAll) == [])
  }

  @Test("testMissingElement 2.1.9: an action for an absent row warns, and reaches the parent only")
  func absentRow() {
    var bench = Bench(Board.State(rows: 1), Board())
    #expect(bench.send(.row(7, .start)) == [.unchanged])
    #expect(bench.core.state.log == ["7 start behind nothing"] && bench.started == [])
    let warnings = bench.core.takeWarnings()
    #expect(warnings.count == 1 && warnings[0].contains("child that is not there"))
    #expect(warnings[0].contains("row of 7"))
  }

  @Test("2.1.9: an action from a removed row's effect is ignored silently")
  func lateAction() {
    var bench = Bench(Board.State(rows: 1), Board())
    bench.send(.row(1, .start))
    bench.send(.remove(1))
    #expect(bench.send(.row(1, .ended), by: "row") == [] && bench.core.takeWarnings() == [])
  }

  @Test("2.1.9: an action from a row's effect arrives as the row's action")
  func childEffect() {
    var bench = Bench(Board.State(rows: 1), Board())
    bench.send(.row(1, .start))
    bench.send(.row(1, .ended), by: "row")
    #expect(bench.core.state.rows.isEmpty && bench.core.effectCount == 0)
  }

  // MARK: Rejection

  @Test("2.5: a rejection rolls back the changes, in a state with notes")
  func rejection() throws {
    var bench = Bench(Board.State(rows: 1, 2), Board())
    bench.send(.row(1, .start))
    let (before, digest) = (bench.core.state.rows, bench.core.state.digest(seed: HashSeed(7)))
    #expect(
      bench.send(.removeThenRefuse(1)) == [.rejected(Rejection(.refused, "the board refuses"))])
    #expect(bench.core.state.rows == before && bench.core.revision == 1)
    #expect(bench.core.state.digest(seed: HashSeed(7)) == digest)
    #expect(bench.running == ["row"])
    // The store continues, and no patch contains the rolled-back changes.
    var mirror = Board.State()
    var patch = CBOREncoder()
    let old = bench.core.state
    #expect(bench.core.send(.remove(2), patch: &patch) == .changed(2))
    mirror = old
    try CBORDecoder.read(patch.bytes) { (decoder) throws(CBORError) in
      try mirror.apply(patch: &decoder, seed: HashSeed(7))
    }
    #expect(mirror.rows == bench.core.state.rows)
  }

  @Test("2.5: a rejection by a child rejects the action, and rolls the child back")
  func childRejection() {
    var bench = Bench(Board.State(rows: 1), Board())
    #expect(
      bench.send(.row(1, .refuse)) == [.rejected(Rejection(.refused, "the row refuses"))])
    #expect(bench.core.state.rows[1]?.log == [] && bench.core.state.log == [])
    #expect(bench.send(.row(1, .start)) == [.changed(1)])
  }

  @Test("2.5: a rejection by an optional child rolls it back")
  func optionalChildRejection() {
    let state = Sheet.State(row: Row.State(id: 1))
    var bench = Bench(state, Sheet())
    #expect(bench.send(.row(.refuse)) == [.rejected(Rejection(.refused, "the row refuses"))])
    #expect(bench.core.state == state)
  }

  // MARK: ifLet

  @Test(
    "testEffectCancellation 2.1.9: an optional child reduces before its parent, and its effects end with it"
  )
  func optionalChild() {
    var bench = Bench(Sheet.State(row: Row.State(id: 1)), Sheet())
    bench.send(.row(.start))
    #expect(bench.core.state.log == ["start behind start"] && bench.running == ["row"])
    bench.send(.dismiss)
    #expect(bench.running == [] && bench.core.state.row == nil)
  }

  @Test("2.1.9: a child that replaces another does not inherit its effects")
  func replacedChild() {
    var bench = Bench(Sheet.State(row: Row.State(id: 1)), Sheet())
    bench.send(.row(.start))
    bench.send(.open(1))
    #expect(bench.running == ["row"])
    bench.send(.open(2))
    #expect(bench.running == [])
  }

  @Test func `other contents with another child in its place end its effects`() {
    var bench = Bench(Sheet.State(row: Row.State(id: 1)), Sheet())
    bench.send(.row(.start))
    for (id, running) in [(1, ["row"]), (2, [])] {
      let contents = Sheet.State(row: Row.State(id: id), title: "\(id)")
      bench.change { core in
        _ = core.replaceState(by: contents)
      }
      #expect(bench.running == running && bench.core.state.title == "\(id)")
    }
  }

  @Test("testNilChild 2.1.9: an action for an absent optional child warns")
  func absentChild() {
    var bench = Bench(Sheet.State(), Sheet())
    bench.send(.row(.start))
    #expect(bench.core.state.log == ["start behind nothing"] && bench.started == [])
    #expect(bench.core.takeWarnings().first?.contains("row.start") == true)
  }

  // MARK: ifCaseLet

  @Test(
    "testEffectCancellation_Siblings 2.1.9: the effects of the child of a case end with the case")
  func caseChild() {
    var bench = Bench(Screen.State.row(Row.State(id: 1)), Screen())
    bench.send(.row(.start))
    #expect(bench.core.state == .row(Row.State(id: 1, log: ["start"])) && bench.running == ["row"])
    bench.send(.show(nil))
    #expect(bench.running == [] && bench.core.state == .list)
    bench.send(.row(.start))
    #expect(bench.core.takeWarnings().count == 1 && bench.running == [])
    bench.send(.show(2))
    bench.send(.row(.start))
    bench.send(.show(3))
    #expect(bench.running == [])
  }

  // MARK: onChange

  @Test("testOnChange 2.1.11: onChange runs after the reducer, and only when the value differs")
  func onChange() {
    var bench = Bench(Sheet.State(), Sheet())
    bench.send(.rename("a"))
    #expect(bench.core.state.log == [" -> a"] && bench.running == ["rename"])
    bench.send(.rename("a"))
    bench.send(.dismiss)
    #expect(bench.core.state.log == [" -> a"] && bench.running == ["rename"])
    // Composed and decomposed characters differ for every mirror, though Swift compares them equal.
    bench.send(.rename("\u{e9}"))
    bench.send(.rename("e\u{301}"))
    #expect(bench.core.state.log.count == 3)
  }
}

extension StoreCore {
  /// Replace the state by one that may differ anywhere, as a jump does.
  fileprivate mutating func replaceState(by new: R.State) -> Reduction {
    var patch = CBOREncoder()
    let isOther = new.encodeDifference(from: state, into: &patch)
    return replaceState(by: new, isOther: isOther, from: .owner, named: "jump")
  }
}
