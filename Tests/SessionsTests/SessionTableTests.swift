import Lockstep
import Testing
import Values
import Wire

@testable import DaemonCore

/// The invariants of the table of sessions, whatever happens to connections and processes.
@Suite struct SessionTableTests {
  /// A random life: clients connect, resume, are lost and say goodbye; processes end; time passes.
  private struct Life {
    var table: SessionTable
    var connections = Roster(closedLimit: 0)
    var now = Instant(nanoseconds: 0)
    var random: SplitMix64
    var nextID: UInt64 = 0
    /// The token of each connection.
    var tokens: [ConnectionID: SessionToken] = [:]
    var events: [UInt64: [SessionEvent]] = [:]
    let limits: Limits

    init(seed: Int) {
      var limits = Limits()
      limits.detachedSessions = 4
      limits.sessionGrace = .seconds(10)
      self.limits = limits
      table = SessionTable(limits, total: 0, reportsEvents: true)
      random = SplitMix64(UInt64(seed))
    }

    mutating func connect(_ token: SessionToken?) {
      nextID += 1
      let id = ConnectionID(nextID)
      let offered = SessionToken(high: 1, low: nextID)
      let connection = ServerSession(
        id: id, peer: Peer(pid: 1, uid: nextID % 3, gid: 0), ordinal: nextID, offered: offered,
        limits: limits, at: now)
      connections.insert(connection)
      if let token, table[token] != nil {
        for (other, theirs) in tokens where theirs == token { tokens[other] = nil }
        table.claim(token, for: id)
        table.resume(token, on: connection, among: connections)
        tokens[id] = token
      } else {
        table.begin(offered, on: connection, outcomes: Outcomes(limits), among: connections)
        tokens[id] = offered
      }
    }

    mutating func lose(_ id: ConnectionID, goodbye: GoodbyeCode? = nil) {
      _ = connections.remove(id)
      guard let token = tokens.removeValue(forKey: id) else { return }
      if let surplus = table.detach(token, from: id, for: goodbye, at: now) {
        _ = table.forget(surplus, .graceOver, among: connections)
      }
      if goodbye == .done { _ = table.forget(token, .goodbye, among: connections) }
    }

    mutating func step() {
      now = now + .milliseconds(Int64(random.next() % 2000))
      let known = table.pairs.map(\.key)
      let open = tokens.keys.sorted()
      switch random.next() % 6 {
      case 0: connect(nil)
      case 1: connect(known.isEmpty ? nil : known[Int(random.next() % UInt64(known.count))])
      case 2 where !open.isEmpty: lose(open[Int(random.next() % UInt64(open.count))])
      case 3 where !open.isEmpty:
        lose(open[Int(random.next() % UInt64(open.count))], goodbye: .done)
      case 4 where nextID > 0:
        let id = ConnectionID(1 + random.next() % nextID)
        if connections.place(of: id) != nil { connections[id]?.processExited() }
        table.exited(id)
      default:
        for token in (0..<table.placeCount).compactMap({ table.expired($0, at: now) }) {
          _ = table.forget(token, .graceOver, among: connections)
        }
      }
      for event in table.takeEvents() { events[event.session, default: []].append(event) }
    }
  }

  /// It is about to be forgotten, so there is room for the others.
  @Test func `a session whose client says goodbye evicts no other`() {
    var limits = Limits()
    limits.detachedSessions = 1
    var bench = Bench(limits: limits)
    for number in 1...2 as ClosedRange<UInt64> { bench.join(number) }
    bench.handle(.closed(ConnectionID(1)))
    bench.say(2, .goodbye(.done, ""))
    _ = bench.turn()
    #expect(bench.server.load.sessions == 1 && bench.server.load.detachedSessions == 1)
    bench.open(3)
    bench.say(3, .hello(.init(versions: 1...1, label: "bench", token: Bench.token(1))))
    let welcomes = bench.said(to: 3, bench.turn()).compactMap { message -> Bool? in
      if case .welcome(let welcome) = message { welcome.isResumed } else { nil }
    }
    #expect(welcomes == [true])
  }

  @Test(arguments: 0..<50) func `the invariants of the session table hold`(seed: Int) {
    var life = Life(seed: seed)
    for _ in 0..<400 {
      life.step()
      let detached = life.table.pairs.filter { $0.value.connection == nil }
      #expect(life.table.detachedCount == detached.count)
      #expect(detached.count <= life.limits.detachedSessions)
      for (token, record) in life.table.pairs {
        #expect((record.connection == nil) == (record.expires != nil))
        if let id = record.connection { #expect(life.tokens[id] == token) }
      }
      for id in life.table.takeUnwatched() { #expect(life.connections.place(of: id) == nil) }
    }
    #expect(life.table.total >= UInt64(life.table.count))
    for (session, events) in life.events {
      var isThere = true
      var hasEnded = false
      for event in events {
        switch event {
        case .lost:
          #expect(isThere && !hasEnded, "session \(session): \(events)")
          isThere = false
        case .returned:
          #expect(!isThere, "session \(session): \(events)")
          (isThere, hasEnded) = (true, false)
        case .ended:
          #expect(!hasEnded, "session \(session): \(events)")
          (isThere, hasEnded) = (false, true)
        }
      }
    }
  }
}
