import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// A count that effects add to.
private struct Tally: Reducer {
  enum Action: SynchronizableAction, SynchronizableScalar, Equatable {
    /// Adds a digit at the end.
    case add(UInt64)
    case work

    var name: String { self == .work ? "work" : "add" }
    func encode(into encoder: inout CBOREncoder) {
      if case .add(let number) = self { encoder.encode(number) } else { encoder.encode(99) }
    }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      let number = try decoder.unsigned()
      self = number == 99 ? .work : .add(number)
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .unsigned }
  }

  func reduce(into state: inout Int, action: Action) -> Effect<Action> {
    if case .add(let number) = action { state = state * 10 + Int(number) }
    // What follows its task shows when its end is heard.
    return action == .work ? .concatenate(.run(name: "wait") { _ in }, .send(.add(9))) : .none
  }
}

/// While the daemon is paused, its contents stay as they are.
@Suite struct PauseTests {
  private struct Desk {
    var server: Server<Tally>
    var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var effect: EffectID?

    init(limits: Limits = Limits()) {
      server = Server(0, reducer: Tally(), seed: HashSeed(7), epoch: 9, limits: limits, at: now)
      handle(.opened(ConnectionID(1), Bench.peer, Bench.token(1)))
      say(.hello(.init(versions: 1...3, label: "desk")))
      handle(.turnEnded)
      say(.action(number: 1, .applied, payload: [0x18, 99]))
      for case .effect(.start(let id)) in handle(.turnEnded) { effect = id }
    }

    @discardableResult
    mutating func handle(_ event: Event<Tally.Action>) -> [Command] {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      return commands
    }

    mutating func say(_ message: ClientMessage) {
      handle(.received(ConnectionID(1), frame(message)))
    }

    mutating func ask(_ name: String, _ arguments: String...) {
      say(.query(number: 5, name, arguments: arguments))
      handle(.turnEnded)
    }

    /// Turns until nothing is left to do. Returns their number.
    @discardableResult
    mutating func settle() -> Int {
      for count in 1... where !handle(.turnEnded).contains(.wake) { return count }
      return 0
    }
  }

  @Test func `while it is paused, actions are rejected, and all else goes on`() {
    var bench = Bench(["n": 0])
    for client in [1, 2] as [UInt64] { bench.join(client, versions: 1...3) }
    bench.measure()
    bench.keepPast()
    func outcomes(_ commands: [Command]) -> [Acknowledgement.Outcome] {
      bench.said(to: 1, commands).compactMap {
        if case .acknowledgement(let acknowledgement) = $0 { acknowledgement.outcome } else { nil }
      }
    }
    bench.act(1, 1, .increment(["n"], by: 1))
    #expect(outcomes(bench.turn()) == [.reduced])
    #expect(bench.ask(2, "pause") == ["paused": true, "was": false])
    #expect(bench.ask(2, "pause", "60") == ["paused": true, "was": true])
    bench.act(1, 2, .increment(["n"], by: 1))
    guard case .rejected(let rejection)? = outcomes(bench.turn()).first else {
      Issue.record("it was not rejected")
      return
    }
    #expect(rejection.code == Rejection.Code.paused.rawValue, "\(rejection)")
    #expect(bench.server.state.root == ["n": 1])
    bench.pass(.seconds(2))
    #expect(bench.ask(1, "status").child("pausedMs") == 2000)
    #expect(bench.ask(2, "undo") == ["revision": 2, "of": 0])
    #expect(bench.server.state.root == ["n": 0])
    #expect(bench.ask(2, "resume") == ["paused": false, "was": true])
    #expect(bench.ask(2, "resume") == ["paused": false, "was": false])
    #expect(bench.ask(1, "status").child("pausedMs") == .null)
    // The rejection stands, also if the action is sent again.
    bench.act(1, 2, .increment(["n"], by: 1))
    bench.act(1, 3, .increment(["n"], by: 5))
    _ = bench.turn()
    #expect(bench.server.state.root == ["n": 5])
  }

  @Test func `a pause ends after its time, and not before`() {
    var bench = Bench(["n": 0])
    bench.join(1, versions: 1...3)
    _ = bench.ask(1, "pause", "10")
    for (passed, isOn) in [(9, true), (2, false)] {
      bench.pass(.seconds(passed))
      bench.handle(.tick)
      #expect((bench.ask(1, "status").child("pausedMs") != .null) == isOn)
    }
    #expect(
      bench.logs.map(\.message).suffix(2) == [
        "paused: actions are rejected", "the pause is over: its time is up",
      ])
    for argument in ["0", "86401", "x", "-1"] {
      #expect(ReportError(bench.ask(1, "pause", argument))?.code == .malformed, "\(argument)")
    }
    #expect(bench.ask(1, "status").child("pausedMs") == .null)
  }

  @Test func `only who administers may pause`() {
    let rules = [
      Rule(users: [1], mayConnect: true, read: [.whole], act: [.all], write: [.whole])
    ]
    var bench = Bench(["n": 0], policy: Policy(rules))
    bench.join(1, uid: 1, versions: 1...3)
    for query in ["pause", "resume"] {
      #expect(ReportError(bench.ask(1, query))?.code == .denied)
    }
    bench.act(1, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    #expect(bench.server.state.root == ["n": 1])
  }

  @Test func `the status says who may pause, and who may jump`() {
    func rule(_ uid: UInt64, administers: Bool, writes: [PathPattern]) -> Rule {
      Rule(
        users: [uid], mayConnect: true, mayAdminister: administers, read: [.whole], act: [.all],
        write: writes)
    }
    var bench = Bench(
      ["n": 0],
      policy: Policy([
        rule(1, administers: true, writes: [.whole]), rule(2, administers: true, writes: []),
        rule(3, administers: false, writes: [.whole]),
      ]))
    for uid in [1, 2, 3] as [UInt64] { bench.join(uid, uid: uid, versions: 1...3) }
    _ = bench.ask(1, "jump", "0")
    for uid in [1, 2, 3] as [UInt64] {
      let status = bench.ask(uid, "status")
      let mayPause = ReportError(bench.ask(uid, "resume"))?.code != .denied
      let mayJump = ReportError(bench.ask(uid, "jump", "0"))?.code != .denied
      #expect(status.child("mayAdminister") == .bool(mayPause) && mayPause == (uid < 3))
      #expect(status.child("mayDoAll") == .bool(mayJump) && mayJump == (uid == 1))
    }
    var open = Bench(["n": 0])
    open.join(1, versions: 1...3)
    let status = open.ask(1, "status")
    #expect(status.child("mayAdminister") == true && status.child("mayDoAll") == true)
  }

  /// What an effect has told waits, its end too, and is heard in order.
  @Test func `what effects send waits for the end of the pause`() throws {
    var desk = Desk()
    let effect = try #require(desk.effect)
    desk.ask("pause")
    desk.handle(.effectSent(effect, .add(1)))
    desk.handle(.effectSent(effect, .add(2)))
    desk.handle(.effectEnded(effect, unhandled: nil))
    desk.settle()
    #expect(desk.server.state == 0 && desk.server.runningEffects.count == 1)
    desk.ask("resume")
    // It comes behind what waits.
    desk.handle(.effectSent(effect, .add(3)))
    desk.settle()
    #expect(desk.server.state == 129 && desk.server.runningEffects.isEmpty)
  }

  /// The end of an effect, by whatever, leads to an action of its own.
  @Test func `what follows from a cancellation waits as well`() throws {
    var desk = Desk()
    desk.ask("pause")
    desk.ask("effects.cancel", "wait")
    desk.settle()
    #expect(desk.server.state == 0 && desk.server.runningEffects.isEmpty)
    desk.ask("resume")
    desk.settle()
    #expect(desk.server.state == 9)
  }

  @Test func `a daemon that stops does what waits before`() throws {
    var desk = Desk()
    let effect = try #require(desk.effect)
    desk.ask("pause")
    desk.handle(.effectSent(effect, .add(4)))
    desk.handle(.effectEnded(effect, unhandled: nil))
    desk.handle(.stop(retryAfter: nil))
    #expect(desk.server.state == 49)
  }

  @Test func `what waited is heard in turns of a bounded length`() throws {
    var limits = Limits()
    limits.waitingPerTurn = 4
    var desk = Desk(limits: limits)
    let effect = try #require(desk.effect)
    desk.ask("pause")
    for _ in 0..<15 { desk.handle(.effectSent(effect, .add(1))) }
    desk.say(.query(number: 6, "resume", arguments: []))
    #expect(desk.settle() >= 4)
    #expect(desk.server.state == 111_111_111_111_111)
  }

  @Test func `a pause that is forgotten ends before what waits takes the memory`() throws {
    var desk = Desk()
    let effect = try #require(desk.effect)
    desk.ask("pause")
    for _ in 0..<9_999 { desk.handle(.effectSent(effect, .add(0))) }
    desk.settle()
    #expect(desk.server.revision == 0)
    desk.handle(.effectSent(effect, .add(7)))
    desk.settle()
    #expect(desk.server.state == 7)
  }

  @Test func `a process that takes over does what waited, and is not paused`() throws {
    var desk = Desk()
    let effect = try #require(desk.effect)
    desk.ask("pause")
    desk.handle(.effectSent(effect, .add(4)))
    desk.handle(.handingOver(retryAfter: 1))
    let encoded = desk.server.handOver.encoded(schema: Tally().schema)
    let image = try HandOver<Int>(encoded, schema: Tally().schema)
    desk.server = Server(restoring: image.next, reducer: Tally(), at: desk.now)
    #expect(desk.server.state == 4)
    for connection in image.connections {
      desk.handle(.inherited(connection, isTranslated: false))
    }
    desk.say(.action(number: 2, .applied, payload: [1]))
    desk.settle()
    #expect(desk.server.state == 41)
  }
}
