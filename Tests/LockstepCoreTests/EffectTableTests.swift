import CBOR
import Lockstep
import Testing
import Values

@Suite("Effects: the table")
struct EffectTableTests {
  // MARK: Order

  @Test("RDX-15, 2.1.1: actions sent by a reduction are queued, and taken in order")
  func buffered() {
    var bench = Bench {
      switch $0 {
      case "start": .merge(.send("a"), .send("b"), .send("c"))
      case "a": .send("d")
      default: .none
      }
    }
    #expect(bench.send("start") == (1...5).map { .changed($0) })
    #expect(bench.log == ["start", "a", "b", "c", "d"])
  }

  @Test("2.1: 100,000 actions that each send the next overflow no stack")
  func manySends() {
    let reducer = Reduce<Trace, Act> { state, action in
      state.log = [action.name]
      let number = Int(action.name) ?? 0
      return number < 100_000 ? .send(Act("\(number + 1)")) : .none
    }
    var bench = Bench(Trace(), reducer)
    let reductions = bench.send("0")
    #expect(reductions.count == 100_001)
    #expect(bench.core.state.log == ["100000"])
    #expect(bench.core.isDone(1))
  }

  @Test("RDX-20c: many queued actions are taken in order")
  func manyWaiting() {
    let reducer = Reduce<Trace, Act> { state, action in
      if action == "start" { return .merge((0..<20_000).map { .send(Act("\($0)")) }) }
      // The state is the number of the latest action, and the number of any that came out of order.
      let previous = state.log.first.flatMap { Int($0) } ?? -1
      let isInOrder = Int(action.name) == previous + 1
      state.log = [action.name] + state.log.dropFirst() + (isInOrder ? [] : [action.name])
      return .none
    }
    var bench = Bench(Trace(), reducer)
    bench.send("start")
    #expect(bench.core.state.log == ["19999"])
    #expect(!bench.core.hasWaiting)
  }

  // MARK: The table

  @Test("EFF-03, EFF-09: an effect that completes at once never enters the table")
  func immediate() {
    var bench = Bench {
      $0 == "start"
        ? .merge(.none, .send("a").cancellable(id: 1), .concatenate(.send("b"), .none)) : .none
    }
    bench.send("start")
    #expect(bench.core.effectCount == 0 && bench.core.runningEffects == [])
    #expect(bench.started == [] && bench.core.isDone(1))
  }

  @Test("EFF-08, EFF-10: an effect's action is reduced, and names the action that began the effect")
  func origin() throws {
    var bench = Bench { $0 == "connectWebSocket" ? .job("socket") : .none }
    bench.send("connectWebSocket")
    #expect(bench.send("updateWebSocket", by: "socket") == [.changed(2)])
    let record = try #require(bench.core.log.newest)
    #expect(record.cause.parent == 1)
    #expect(record.cause.origin == .effect(try #require(bench.id("socket")), name: "socket"))
    #expect(bench.core.log.chain(of: 2).map(\.name) == ["updateWebSocket", "connectWebSocket"])
  }

  @Test("EFF-11: an effect that completes leaves the table")
  func completion() {
    var bench = Bench { $0 == "start" ? .job("load").cancellable(id: "x") : .none }
    bench.send("start")
    #expect(bench.running == ["load"] && !bench.core.isDone(1))
    bench.finish("load")
    #expect(bench.running == [] && bench.core.effectCount == 0 && bench.core.isDone(1))
    #expect(bench.cancelled == [])
  }

  @Test("EFF-12: an effect that does not complete stays in the table and continues to send")
  func longLiving() {
    var bench = Bench { $0 == "connect" ? .job("socket") : .none }
    bench.send("connect")
    for number in 1...1000 { bench.send(Act("\(number)"), by: "socket") }
    #expect(bench.log.count == 1001)
    #expect(bench.core.runningEffects.map(\.sent) == [1000])
  }

  @Test("EFF-03: a running effect is listed with its keys, its action, its client and its number")
  func listing() throws {
    var bench = Bench { action in
      action == "start" ? .merge(.job("a").cancellable(id: "k"), .job("b").ownedByClient) : .none
    }
    bench.send("start", from: .client(3))
    let (first, second) = (bench.core.runningEffects[0], bench.core.runningEffects[1])
    #expect(first.name == "a" && first.keys.map(\.description) == ["k"] && !first.isOwned)
    #expect(second.name == "b" && second.keys == [] && second.isOwned)
    #expect(first.action == "start" && first.sequence == 1 && first.client?.connection == 3)
    #expect(first.id != second.id && first.id.uuid != second.id.uuid)
    #expect(first.place.contains("Described.swift:"))
  }

  // MARK: Cancelling

  @Test("2.1.4: keys are typed: \"1\", 1 and Int8(1) are three")
  func typedNames() {
    var bench = Bench {
      switch $0 {
      case "start":
        .merge(
          .job("text").cancellable(id: "1"), .job("int").cancellable(id: 1),
          .job("int8").cancellable(id: Int8(1)))
      case "cancel text": .cancel(id: "1")
      case "cancel int8": .cancel(id: Int8(1))
      default: .none
      }
    }
    bench.send("start")
    bench.send("cancel text")
    #expect(bench.running == ["int", "int8"])
    bench.send("cancel int8")
    #expect(bench.running == ["int"] && bench.cancelled == ["text", "int8"])
  }

  @Test("2.1.4: effects share a key, and one cancel stops them all")
  func sharedName() {
    var bench = Bench {
      switch $0 {
      case "cancel": .cancel(id: 1)
      default: .job($0.name).cancellable(id: 1)
      }
    }
    bench.send("a")
    bench.send("b")
    #expect(bench.running == ["a", "b"])
    bench.send("cancel")
    #expect(bench.running == [] && bench.cancelled == ["a", "b"])
    bench.send("cancel")
    #expect(bench.cancelled == ["a", "b"])
  }

  @Test("2.1.4: cancelInFlight cancels the older effects first")
  func cancelInFlight() {
    var bench = Bench { .job($0.name).cancellable(id: 1, cancelInFlight: true) }
    bench.send("a")
    bench.send("b")
    #expect(bench.running == ["b"] && bench.cancelled == ["a"])
    bench.finish("b")
    bench.send("c")
    #expect(bench.running == ["c"] && bench.cancelled == ["a"])
  }

  @Test("2.1.4: unlessRunning starts nothing while an effect with its key runs")
  func unlessRunning() {
    var bench = Bench { .job($0.name).unlessRunning(id: 1) }
    bench.send("a")
    bench.send("b")
    #expect(bench.started == ["a"])
    bench.finish("a")
    bench.send("c")
    #expect(bench.started == ["a", "c"])
  }

  @Test("2.1.4: an effect with two keys is cancelled by either")
  func twoNames() {
    for name in ["inner", "outer"] {
      var bench = Bench { action in
        action == "start"
          ? .job("a").cancellable(id: "inner").cancellable(id: "outer") : .cancel(id: name)
      }
      bench.send("start")
      #expect(bench.core.runningEffects[0].keys.map(\.description) == ["inner", "outer"])
      bench.send("cancel")
      #expect(bench.running == [] && bench.cancelled == ["a"])
    }
  }

  @Test("2.1.4: an effect that is cancelled before it starts does not start")
  func cancelledAtOnce() {
    var bench = Bench { _ in .merge(.job("a").cancellable(id: 1), .cancel(id: 1)) }
    bench.send("start")
    #expect(bench.started == [] && bench.core.effectCount == 0 && bench.core.isDone(1))
  }

  @Test("2.1.4: a part that cancels the key of the whole stops every part from starting")
  func cancelsItself() {
    var bench = Bench { _ in
      .merge(.job("a"), .cancel(id: 1), .job("b")).cancellable(id: 1)
    }
    bench.send("start")
    #expect(bench.started == [] && bench.core.effectCount == 0 && bench.core.isDone(1))

    bench = Bench { _ in .concatenate(.cancel(id: 1), .job("b")).cancellable(id: 1) }
    bench.send("start")
    #expect(bench.started == [] && bench.core.effectCount == 0 && bench.core.isDone(1))
  }

  @Test("2.1: 10,000 effects with one key are cancelled at once, and leave no row")
  func manyCancels() {
    var bench = Bench { action in
      action == "start"
        ? .merge((0..<10_000).map { .job("\($0)").cancellable(id: "all") }) : .cancel(id: "all")
    }
    bench.send("start")
    #expect(bench.core.effectCount == 10_000)
    bench.send("cancel")
    #expect(bench.core.effectCount == 0 && bench.core.isDone(1))
    #expect(bench.cancelled.count == 10_000 && bench.cancelled[7] == "7")
  }

  @Test("EFF-12: effects are cancelled from outside by UUID, name and key")
  func cancelFromOutside() throws {
    var bench = Bench { _ in
      .merge(
        .job("a"), .job("b").cancellable(id: "key"), .job("c").cancellable(id: "key"), .job("d"))
    }
    bench.send("start")
    let id = try #require(bench.id("a"))
    var counts: [Int] = []
    bench.change { core in
      counts = [id.description, "key", "d", "nothing"].map { core.cancelEffects($0) }
    }
    #expect(counts == [1, 2, 1, 0] && bench.cancelled == ["a", "b", "c", "d"])
  }

  @Test("2.1.10: cancelling a part of a sequence counts as one, though the next part starts")
  func cancelInSequence() {
    var bench = Bench { _ in .concatenate(.job("a"), .job("b")) }
    bench.send("start")
    var count = 0
    bench.change { count = $0.cancelEffects("a") }
    #expect(count == 1 && bench.running == ["b"])
  }

  // MARK: Late sends

  @Test("2.1.5: an action sent by a cancelled effect is ignored silently")
  func sendAfterCancel() {
    var bench = Bench { action in
      action == "start" ? .job("a").cancellable(id: 1) : .cancel(id: 1)
    }
    bench.send("start")
    bench.send("cancel")
    #expect(bench.send("late", by: "a") == [])
    #expect(bench.log == ["start", "cancel"] && bench.core.takeWarnings() == [])
  }

  @Test("2.1.5, EFF-13: an action of a completed effect is ignored, and reported with its cause")
  func sendAfterCompletion() throws {
    var bench = Bench { $0 == "start" ? .job("load") : .none }
    bench.send("start")
    bench.finish("load")
    #expect(bench.send("late", by: "load") == [] && bench.log == ["start"])
    let warning = try #require(bench.core.takeWarnings().first)
    #expect(warning.contains("Action: late.") && warning.contains("returned for: start."))
    #expect(warning.contains("\"load\""))
    #expect(bench.core.takeWarnings() == [])
  }

  @Test("2.1.6: an uncaught error is reported with the source location of its effect")
  func unhandled() throws {
    var bench = Bench { $0 == "start" ? .job("load") : .none }
    bench.send("start")
    bench.finish("load", unhandled: "no network")
    let warning = try #require(bench.core.takeWarnings().first)
    #expect(warning.contains("Described.swift:") && warning.contains("no network"))
    #expect(warning.contains("\"load\"") && warning.contains("returned for start"))
    #expect(bench.core.effectCount == 0)
  }

  // MARK: Putting together

  @Test("2.1.7: merge runs its parts concurrently, and is done when all are")
  func merge() {
    var bench = Bench {
      $0 == "start" ? .concatenate(.merge(.job("a"), .job("b")), .send("done")) : .none
    }
    bench.send("start")
    #expect(bench.running == ["a", "b"])
    bench.finish("b")
    #expect(bench.log == ["start"])
    bench.finish("a")
    #expect(bench.log == ["start", "done"] && bench.core.isDone(1))
  }

  @Test("2.1.7: concatenate starts a part when the one before it has ended")
  func concatenate() {
    var bench = Bench {
      $0 == "start"
        ? .concatenate(.job("a"), .send("x"), .concatenate(.job("b"), .send("y")), .job("c"))
        : .none
    }
    bench.send("start")
    #expect(bench.running == ["a"] && bench.log == ["start"])
    bench.finish("a")
    #expect(bench.running == ["b"] && bench.log == ["start", "x"])
    bench.finish("b")
    #expect(bench.running == ["c"] && bench.log == ["start", "x", "y"])
    bench.finish("c")
    #expect(bench.core.isDone(1) && bench.started == ["a", "b", "c"])
  }

  @Test("2.1.7: a cancelled sequence starts nothing more")
  func cancelSequence() {
    var bench = Bench { action in
      action == "start"
        ? .concatenate(.job("a"), .job("b"), .send("c")).cancellable(id: 1) : .cancel(id: 1)
    }
    bench.send("start")
    bench.send("cancel")
    #expect(bench.started == ["a"] && bench.log == ["start", "cancel"])
  }

  // MARK: Owners and cascades

  @Test("RKT-18: the effects that a client owns end with it, and no others do")
  func owned() {
    var bench = Bench {
      .merge(.job("\($0) owned").ownedByClient, .job("\($0) free"))
    }
    bench.send("a", from: .client(1))
    bench.send("b", from: .client(2))
    bench.change { $0.cancelEffects(ownedBy: 1) }
    #expect(bench.running == ["a free", "b owned", "b free"])
  }

  @Test("2.1.10: an action is done when its effects and their actions' effects are")
  func cascade() {
    var bench = Bench { action in
      switch action {
      case "start": .job("first")
      case "next": .job("second")
      default: .none
      }
    }
    bench.send("start")
    bench.send("next", by: "first")
    bench.finish("first")
    #expect(!bench.core.isDone(1))
    bench.finish("second")
    #expect(bench.core.isDone(1))
  }

  @Test("2.1.10: cancelling an action cancels its whole cascade, and nothing else")
  func cancelCascade() {
    var bench = Bench { action in
      switch action {
      case "start": .job("first")
      case "next": .concatenate(.job("second"), .send("never"))
      case "other": .job("other")
      default: .none
      }
    }
    bench.send("start")
    bench.send("other")
    bench.send("next", by: "first")
    bench.change { $0.cancelCascade(of: 1) }
    #expect(bench.running == ["other"] && bench.core.isDone(1) && !bench.core.isDone(2))
    #expect(bench.log == ["start", "other", "next"])
  }

  @Test("2.1.10: a queued action keeps its cascade open")
  func waitingIsOpen() {
    var core = StoreCore(
      Trace(), reducer: Script.script { $0 == "start" ? .send("next") : .none }, seed: .unseeded)
    var patch = CBOREncoder()
    _ = core.send("start", patch: &patch)
    #expect(!core.isDone(1))
    _ = core.sendNext(patch: &patch)
    #expect(core.isDone(1))
  }

  // MARK: Throttling

  @Test("2.1.8: throttle starts the first effect at once, then the latest of each interval")
  func throttleLatest() {
    var bench = Bench {
      .job($0.name).throttle(id: 1, for: .seconds(1), latest: true)
    }
    for name in ["a", "b", "c"] { bench.send(Act(name)) }
    #expect(bench.running == ["a"] && bench.core.effectCount == 1)
    bench.finish("a")
    bench.finish("throttle")
    #expect(bench.running == ["c"])
    bench.finish("throttle")
    bench.finish("throttle")
    bench.send("d")
    #expect(bench.started.filter { $0 != "throttle" } == ["a", "c", "d"])
  }

  @Test("2.1.8: throttle with latest: false starts the first effect of each interval")
  func throttleFirst() {
    var bench = Bench {
      .job($0.name).throttle(id: 1, for: .seconds(1), latest: false)
    }
    for name in ["a", "b", "c"] { bench.send(Act(name)) }
    bench.finish("throttle")
    #expect(bench.running == ["a", "b"])
  }

  @Test("2.1.8: a cancel by key stops running effects and drops waiting ones")
  func throttleCancelled() {
    var bench = Bench {
      $0 == "cancel"
        ? .cancel(id: 1) : .job($0.name).throttle(id: 1, for: .seconds(1), latest: true)
    }
    bench.send("a")
    bench.send("b")
    #expect(!bench.core.isDone(2))
    bench.send("cancel")
    #expect(bench.cancelled == ["a"] && bench.core.isDone(1) && bench.core.isDone(2))
    bench.finish("throttle")
    #expect(bench.running == [] && bench.core.effectCount == 0)
  }

  @Test("2.1.10: a throttled effect belongs to its action's cascade, its interval to none")
  func throttleCascade() {
    var bench = Bench {
      .job($0.name).throttle(id: 1, for: .seconds(1), latest: true)
    }
    bench.send("a")
    bench.send("b")
    bench.change { $0.cancelCascade(of: 1) }
    #expect(bench.core.isDone(1) && !bench.core.isDone(2))
    bench.finish("throttle")
    #expect(bench.running == ["b"])
    bench.send("c")
    bench.change { $0.cancelCascade(of: 3) }
    #expect(bench.core.isDone(3))
    bench.finish("throttle")
    #expect(bench.running == ["b"])
  }

  @Test("RKT-18: a throttled effect is dropped with the client that owns it")
  func throttleOwned() {
    var bench = Bench {
      .job($0.name).throttle(id: 1, for: .seconds(1), latest: true).ownedByClient
    }
    bench.send("a", from: .client(1))
    bench.send("b", from: .client(2))
    bench.change { $0.cancelEffects(ownedBy: 1) }
    bench.finish("throttle")
    #expect(bench.running == ["b"])
    bench.send("c", from: .client(1))
    bench.change { $0.cancelEffects(ownedBy: 1) }
    bench.finish("throttle")
    #expect(bench.running == ["b"])
  }

  // MARK: Acknowledging

  @Test("2.2: an action with an accepted effect is acknowledged as accepted, also if nested")
  func accepted() {
    var bench = Bench(
      Trace(),
      Reduce<Trace, Act> { _, action in
        switch action {
        case "plain": .job("a")
        case "accepted": .job("a").accepted
        case "inside": .merge(.none, .concatenate(.job("a").accepted, .job("b")).ownedByClient)
        default: .none.accepted
        }
      })
    #expect(bench.send("plain") == [.unchanged])
    #expect(bench.send("accepted") == [.accepted])
    #expect(bench.send("inside") == [.accepted])
    #expect(bench.send("nothing") == [.accepted])
  }
}
