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

  /// Changes the state, or rejects, or does neither.
  struct Fickle: Reducer {
    func reduce(into state: inout Trace, action: Act) throws(Rejection) -> Effect<Act> {
      switch action {
      case "reject": throw Rejection(.refused, "no")
      case "nothing": break
      default: state.log.append(action.name)
      }
      return .none
    }
  }

  /// What a record says.
  struct Row: Equatable {
    var sequence: UInt64
    var name: String
    var action: Act?
    var cause: Cause
    var time: Timestamp
    var outcome: Reduction
    var revision: Revision
    var seed: UInt64

    init(
      _ sequence: UInt64, _ name: String, _ action: Act?, _ cause: Cause, _ time: Timestamp,
      _ outcome: Reduction, _ revision: Revision
    ) {
      (self.sequence, self.name, self.action, self.cause) = (sequence, name, action, cause)
      (self.time, self.outcome, self.revision) = (time, outcome, revision)
      seed = Hashing.mix(11 &+ sequence)
    }

    init(_ record: ActionRecord<Act>) {
      self.init(
        record.sequence, record.name, record.action, record.cause, record.time, record.outcome,
        record.revision)
      seed = record.seed
    }
  }

  @Test("EFF-10: a record is that of its action, whatever it was written over", arguments: 0...5)
  func writtenOver(_ capacity: Int) {
    var core = StoreCore(
      Trace(), reducer: Fickle(), seed: HashSeed(11), sequence: 3, logCapacity: capacity)
    var expected: [Row] = []
    // In one of a former process it had another name, and one was not kept.
    let former: [(Act?, String)] = [("a", "a"), ("a", "former"), (nil, "large")]
    for (number, (action, name)) in former.enumerated() {
      let row = Row(
        UInt64(number + 1), name, action, .owner, Timestamp(nanoseconds: -1), .accepted, 0)
      core.takeUp(
        row.action, named: name, number: row.sequence, from: row.cause, at: row.time, row.outcome,
        row.revision)
      expected.append(row)
    }
    let clients = (1...2).map {
      Cause(.client(ClientOrigin(connection: $0, pid: 0, uid: 0, gid: 0)))
    }
    var random = SplitMix64(UInt64(capacity))
    var patch = CBOREncoder()
    for number in 1...200 {
      core.time = Timestamp(nanoseconds: Int64(number))
      let action = (["a", "b", "nothing", "reject"] as [Act])[Int.random(in: 0..<4, using: &random)]
      let cause = ([.owner] + clients)[Int.random(in: 0..<3, using: &random)]
      let isLogged = Int.random(in: 0..<4, using: &random) > 0
      let outcome = core.send(action, from: cause, isLogged: isLogged, patch: &patch)
      expected.append(
        Row(
          core.sequence, action.name, isLogged ? action : nil, cause, core.time, outcome,
          core.revision))
      #expect(core.log.all.map(Row.init) == expected.suffix(capacity))
    }
  }
}
