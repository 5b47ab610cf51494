import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite("The log of actions")
struct ActionLogTests {
  @Test("EFF-10, 3.1: a chain of three levels leads back to its first action")
  func chain() {
    var bench = Bench {
      switch $0 {
      case "connect": .job("socket")
      case "update": .send("redraw")
      default: .none
      }
    }
    bench.send("connect", from: .client(9))
    bench.send("other")
    bench.send("update", by: "socket")
    let chain = bench.core.log.chain(of: 4)
    #expect(chain.map(\.name) == ["redraw", "update", "connect"])
    #expect(chain.map(\.sequence) == [4, 3, 1])
    #expect(chain.allSatisfy { $0.cause.client?.connection == 9 })
  }

  /// Uses every kind of input that is not state or action.
  struct Impure: Reducer {
    @Dependency(\.date) var date
    @Dependency(\.uuid) var uuid
    @Dependency(\.random) var random

    func reduce(into state: inout Trace, action: Act) throws(Rejection) -> Effect<Act> {
      let die = random { Int.random(in: 1...6, using: &$0) }
      state.log.append("\(action) \(date()) \(uuid()) \(die)")
      if action == "reject" { throw Rejection(.refused, "no") }
      return action == "more" ? .send("follow") : .none
    }
  }

  /// The digest of the state after each revision.
  func digests(_ core: inout StoreCore<Impure>, _ step: (inout StoreCore<Impure>) -> Bool)
    -> [Digest]
  {
    var digests: [Digest] = []
    while step(&core) { digests.append(core.state.digest(core.seed)) }
    return digests
  }

  @Test("RDX-08, 3.1: replaying a log gives the same state at every revision")
  func reduceAgain() {
    var patch = CBOREncoder()
    var dependencies = DependencyValues()
    dependencies.date = DateGenerator { Timestamp(nanoseconds: -1) }
    var core = StoreCore(
      Trace(), reducer: Impure(), seed: HashSeed(11), dependencies: dependencies)
    var actions: [Act] = ["a", "more", "reject", "b"].reversed()
    let first = digests(&core) { core in
      core.time = core.time + .seconds(1)
      if core.hasWaiting { return core.sendNext(patch: &patch) != nil }
      guard let action = actions.popLast() else { return false }
      _ = core.send(action, patch: &patch)
      return true
    }
    #expect(core.state.log.count == 4 && Set(first).count == 4)
    #expect(core.state.log[0].hasPrefix("a 1970-01-01T00:00:01.000Z "))

    var again = StoreCore(
      Trace(), reducer: Impure(), seed: HashSeed(11), dependencies: dependencies)
    var records = core.log.all[...]
    let second = digests(&again) { core in
      guard let record = records.popFirst(), let action = record.action else { return false }
      core.time = record.time
      _ = core.send(action, from: record.cause, patch: &patch)
      return true
    }
    #expect(second == first && again.revision == core.revision)
    #expect(again.log.all.map(\.seed) == core.log.all.map(\.seed))
  }

  @Test("EFF-10: the log is a ring of the latest actions")
  func ring() {
    var core = StoreCore(
      Trace(), reducer: Reduce<Trace, Act> { _, _ in .none }, seed: .unseeded, logCapacity: 3)
    var patch = CBOREncoder()
    for number in 1...5 { _ = core.send(Act("\(number)"), patch: &patch) }
    #expect(core.log.all.map(\.name) == ["3", "4", "5"] && core.log[2] == nil)
    #expect(core.log[3]?.name == "3" && core.log[5]?.name == "5" && core.log[6] == nil)
    #expect(core.log.last(2).map(\.name) == ["4", "5"])
    #expect(core.log.since(3).map(\.name) == ["4", "5"] && core.log.since(9).isEmpty)
    #expect(core.log.since(0).map(\.name) == ["3", "4", "5"])
  }

  @Test("EFF-10: an action that is too large for the log keeps its name in it")
  func unlogged() {
    var core = StoreCore(Trace(), reducer: Script.script { _ in .none }, seed: .unseeded)
    var patch = CBOREncoder()
    _ = core.send("large", isLogged: false, patch: &patch)
    #expect(core.log.newest?.action == nil && core.log.newest?.name == "large")
  }
}
