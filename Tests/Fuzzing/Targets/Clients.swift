import CBOR
import ClientCore
import Documents
import Values
import Wire

/// A client survives any bytes from its daemon. Input: steps. Each is a byte that selects the
/// event, and for some events a chunk.
func fuzzClientSession(_ given: Input) {
  var input = given
  var victim = Victim()
  var steps = 0
  while !input.isEmpty, steps < 256 {
    switch input.byte() & 15 {
    case 0: victim.hear(input.chunk())
    case 1, 2, 3, 4: victim.hear(Frame.encode { $0.raw(input.chunk()) })
    case 5: victim.welcome(input.byte())
    case 6: victim.ask { _ = $0.send(input.chunk(), into: &$1) }
    case 7:
      victim.ask { _ = $0.subscribe(to: ["a"], as: Value.self, everyRevision: true, into: &$1) }
    case 8: victim.ask { $0.unsubscribe(UInt64(input.byte() & 7), into: &$1) }
    case 9: victim.subscribed(input.byte(), input.byte())
    case 10: victim.snapshot(input.byte(), input.chunk())
    case 11: victim.tick(input.byte())
    case 12: victim.reconnect()
    case 13: victim.acknowledge(input.byte(), input.byte())
    case 14: victim.patch(input.byte(), input.byte(), input.chunk())
    default: victim.ask { $0.ping(1, into: &$1) }
    }
    victim.check()
    steps += 1
  }
  victim.ask { $0.close(into: &$1) }
  require(victim.client.hasEnded, "a client that closes has ended")
}

private struct Victim {
  var client = ClientSession(.init(label: "victim"), seed: 1)
  var now = Instant(nanoseconds: 1_000_000_000)

  init() {
    ask {
      $0.start(at: Instant(nanoseconds: 1_000_000_000), into: &$1)
      $0.connected(at: Instant(nanoseconds: 1_000_000_000), into: &$1)
      _ = $0.subscribe(to: .root, as: Value.self, everyRevision: true, into: &$1)
    }
  }

  mutating func ask(
    _ body: (inout ClientSession, inout [ClientSession.Command]) -> Void
  ) {
    var commands: [ClientSession.Command] = []
    body(&client, &commands)
    for command in commands {
      guard case .send(let bytes) = command else { continue }
      requireFrames(bytes)
    }
  }

  mutating func hear(_ bytes: [UInt8]) {
    let now = now
    ask { client, commands in
      bytes.withUnsafeBytes { client.received($0, at: now, into: &commands) }
    }
  }

  mutating func say(_ message: ServerMessage) {
    hear(Frame.encode { message.encode(into: &$0) })
  }

  mutating func welcome(_ choice: UInt8) {
    let numbers: [UInt64] = [0, 1, 8, 1 << 32, UInt64(Int64.max), .max]
    say(
      .welcome(
        .init(
          version: 1, position: Position(epoch: 7, run: 1, revision: 3), seed: testSeed,
          token: SessionToken(high: 1, low: UInt64(choice)), isResumed: choice & 1 != 0,
          lastAction: numbers[Int(choice >> 1) % 6], window: numbers[Int(choice >> 4) % 6],
          limits: [.init("bookmarkIntervalMs", numbers[Int(choice >> 2) % 6])], schema: nil,
          peer: Peer(pid: 1, uid: 1, gid: 1), durable: nil)))
  }

  mutating func subscribed(_ number: UInt8, _ choice: UInt8) {
    say(
      .subscribed(
        .init(
          subscription: UInt64(number & 7), scope: UInt64(number >> 3),
          .init(rawValue: UInt64(choice & 3)) ?? .snapshot, .none,
          revision: choice > 250 ? .max : UInt64(choice >> 2))))
  }

  mutating func snapshot(_ choice: UInt8, _ bytes: [UInt8]) {
    say(
      .snapshot(
        .init(
          scope: 0, revision: UInt64(choice >> 4), index: UInt64(choice & 3),
          isLast: choice & 4 != 0, bytes: bytes)))
  }

  mutating func patch(_ from: UInt8, _ span: UInt8, _ patch: [UInt8]) {
    let (from, span) = (from > 250 ? .max : UInt64(from), span > 250 ? .max : UInt64(span))
    say(.patch(scope: 0, from: from, [.init(span: span, patch: patch)]))
  }

  mutating func acknowledge(_ first: UInt8, _ count: UInt8) {
    let first = UInt64(first)
    let last = count > 250 ? .max : first + UInt64(count)
    say(.acknowledgement(.init(first: first, last: last, revision: first, .reduced)))
  }

  mutating func tick(_ seconds: UInt8) {
    now = now + .seconds(Int64(seconds))
    let now = now
    ask { $0.tick(at: now, into: &$1) }
  }

  mutating func reconnect() {
    let now = now
    ask {
      $0.disconnected(at: now, into: &$1)
      $0.connected(at: now, into: &$1)
    }
  }

  func check() {
    require(client.unacknowledged >= 0, "actions are answered once")
    for mirror in client.mirrors {
      guard let value = mirror.value.value(as: Value.self) else { continue }
      requireSound(value, "a mirror")
    }
  }

  /// Requires that the client sends whole frames, whatever it has received.
  private func requireFrames(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while rest.count >= 4 {
      let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4 + length)
    }
    require(rest.isEmpty, "a client sends whole frames")
  }
}
