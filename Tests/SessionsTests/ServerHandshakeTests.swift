import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

@Suite struct ServerHandshakeTests {
  @Test func `hello is answered by a welcome`() throws {
    var bench = Bench()
    let joined = bench.join(1)
    let welcome = try #require(joined)
    #expect(welcome.version == 1)
    #expect(welcome.position == Position(epoch: 9, run: 1, revision: 0))
    #expect(welcome.token == Bench.token(1))
    #expect(!welcome.isResumed)
    #expect(welcome.lastAction == 0)
    #expect(welcome.schema == DocumentFeature().schema)
    #expect(welcome.peer == Bench.peer)
  }

  @Test func `a client that knows the schema gets none`() {
    var bench = Bench()
    bench.open(1)
    let fingerprint = DocumentFeature().schema.fingerprint
    bench.say(1, .hello(.init(versions: 1...1, label: "", fingerprint: fingerprint)))
    guard case .welcome(let welcome)? = bench.said(to: 1, bench.turn()).first else {
      Issue.record("no welcome")
      return
    }
    #expect(welcome.schema == nil)
  }

  @Test func `versions are negotiated as ranges, and no common version is a goodbye`() {
    var bench = Bench()
    bench.open(1)
    bench.say(1, .hello(.init(versions: 4...9, label: "")))
    #expect(bench.goodbye(to: 1, bench.turn())?.code == .version)
    bench.open(2)
    bench.say(2, .hello(.init(versions: 0...9, label: "")))
    #expect(bench.said(to: 2, bench.turn()).count == 1)
  }

  @Test(arguments: [
    (frame(ClientMessage.ping(1)), GoodbyeCode.outOfOrder),
    (frame(ServerMessage.pong(1, revision: 1)), .malformed),
    ([2, 0, 0, 0, 0x81, 0x18], .malformed),
    ([1, 0, 0, 0, 0xff], .malformed),
    ([0, 0, 0, 0], .malformed),
    ([3, 0, 0, 0, 0x82, 0x18, 99], .unknownMessage),
    ([255, 255, 255, 127], .frameTooLarge),
  ])
  func `a first message that is no hello ends the connection`(bytes: [UInt8], code: GoodbyeCode) {
    var bench = Bench()
    bench.open(1)
    bench.handle(.received(ConnectionID(1), bytes))
    #expect(bench.goodbye(to: 1, bench.turn())?.code == code)
  }

  @Test(arguments: [
    (frame(ClientMessage.hello(.init(versions: 1...1, label: ""))), GoodbyeCode.outOfOrder),
    (frame(ServerMessage.pong(1, revision: 1)), .malformed),
    ([3, 0, 0, 0, 0x82, 0x18, 99], .unknownMessage),
    (frame(.action(number: 0, .applied, payload: [0])), .outOfOrder),
    (frame(.action(number: 2, .applied, payload: [0])), .outOfOrder),
  ])
  func `an invalid message ends the connection`(bytes: [UInt8], code: GoodbyeCode) {
    var bench = Bench.withClients(2)
    bench.handle(.received(ConnectionID(1), bytes))
    let commands = bench.turn()
    #expect(bench.goodbye(to: 1, commands)?.code == code)
    #expect(bench.frames(to: 2, commands).isEmpty)
    // Anything after it is ignored.
    bench.act(1, 1, .put("n", 1))
    #expect(bench.turn() == [])
    #expect(bench.server.revision == 0)
  }

  @Test func `messages before a malformed one are performed and answered`() {
    var bench = Bench.withSubscribers(1)
    bench.act(1, 1, .put("n", 1))
    bench.handle(.received(ConnectionID(1), [1, 0, 0, 0, 0xff]))
    let said = bench.said(to: 1, bench.turn())
    #expect(said.count == 3)
    #expect(said.dropFirst().first == Acknowledgement.reduced(1, 1, at: 1))
  }

  @Test func `bytes may arrive one by one`() {
    var bench = Bench()
    bench.open(1)
    for byte in frame(ClientMessage.hello(.init(versions: 1...1, label: ""))) {
      bench.handle(.received(ConnectionID(1), [byte]))
    }
    #expect(bench.said(to: 1, bench.turn()).count == 1)
  }

  @Test func `no hello by the deadline is a goodbye with the limit`() {
    var bench = Bench()
    bench.open(1)
    bench.pass(.seconds(10))
    bench.handle(.tick)
    #expect(bench.turn() == [])
    bench.pass(.seconds(2))
    bench.handle(.tick)
    let goodbye = bench.goodbye(to: 1, bench.turn())
    #expect(goodbye?.code == .limit)
    #expect(
      goodbye?.limit == LimitBreach("helloDeadlineMs", limit: 10_000, observed: 12_000))
    #expect(goodbye?.retryAfter == 1000)
  }

  @Test func `a connection above the limit gets a goodbye with a retry time`() {
    var limits = Limits()
    limits.connections = 1
    var bench = Bench.withClients(1, limits: limits)
    bench.open(2)
    let goodbye = bench.goodbye(to: 2, bench.turn())
    #expect(goodbye?.limit == LimitBreach("connections", limit: 1, observed: 2))
    #expect(goodbye?.retryAfter != nil)
  }

  @Test func `a stopping daemon says goodbye to every client, new ones too`() {
    var bench = Bench.withClients(2)
    bench.handle(.stop(retryAfter: 300))
    let commands = bench.turn()
    for number in UInt64(1)...2 {
      #expect(bench.goodbye(to: number, commands)?.code == .stopping)
      #expect(bench.goodbye(to: number, commands)?.retryAfter == 300)
    }
    bench.open(3)
    #expect(bench.goodbye(to: 3, bench.turn())?.code == .stopping)
  }
}
