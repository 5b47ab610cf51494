import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// Actions that are decoded beside the loop, so that nobody else waits for them.
@Suite struct LargeActionTests {
  /// Actions of at least 200 bytes are large.
  static let limits: Limits = {
    var limits = Limits()
    limits.largeActionBytes = 200
    return limits
  }()

  static func text(_ letter: Character) -> Value {
    .text(String(repeating: letter, count: 300))
  }

  /// Connections of these users that mirror the whole document.
  func bench(_ users: [UInt64] = [1000, 1000], _ limits: Limits = limits) -> Bench {
    var bench = Bench(limits: limits)
    for (index, uid) in users.enumerated() {
      bench.join(UInt64(index) + 1, uid: uid)
      bench.say(UInt64(index) + 1, .subscribe(subscription: 1, .root, nil))
      _ = bench.settle()
    }
    return bench
  }

  private func action(_ number: UInt64, _ action: DocumentAction) -> ClientMessage {
    .action(number: number, .applied, payload: payload(action))
  }

  /// The connections whose actions are to be decoded.
  func decoded(in commands: [Command]) -> [UInt64] {
    commands.compactMap { if case .decodeAction(let id) = $0 { id.rawValue } else { nil } }
  }

  /// Decode the action of a connection while others do something, and end the turn.
  func finish(
    _ number: UInt64, in bench: inout Bench, while others: (inout Bench) -> Void = { _ in }
  ) -> [Command] {
    let id = ConnectionID(number)
    let job = bench.server.action(for: id)
    others(&bench)
    return bench.handle(.actionDecoded(id, job?.decoded())) + bench.handle(.turnEnded)
  }

  // MARK: Order

  @Test func `others act while a large action is decoded, and its own client's later ones wait`() {
    var bench = bench()
    let commands = bench.say(
      1, action(1, .put("a", 1)), action(2, .put("b", Self.text("x"))), action(3, .put("c", 3)),
      .ping(7))
    #expect(commands.contains(.pauseReading(ConnectionID(1))))
    bench.act(2, 1, .put("other", 1))
    let first = bench.handle(.turnEnded)
    #expect(decoded(in: first) == [1])
    #expect(bench.said(to: 2, first).contains(Acknowledgement.reduced(1, 1, at: 2)))
    #expect(bench.server.state.root == ["n": 0, "a": 1, "other": 1])
    let second = finish(1, in: &bench)
    #expect(second.contains(.resumeReading(ConnectionID(1))))
    #expect(
      bench.server.state.root == ["n": 0, "a": 1, "other": 1, "b": Self.text("x"), "c": 3])
    let said = bench.said(to: 1, second)
    #expect(said.contains(Acknowledgement.reduced(2, 3, at: 4)))
    // The answer to a ping comes behind everything that was read before it.
    #expect(said.contains(.pong(7, revision: 4)))
  }

  @Test func `one is decoded at a time, users take turns, and so do the connections of each`() {
    var bench = bench([7, 7, 7, 8])
    for number in [1, 2, 3, 4] as [UInt64] {
      bench.act(number, 1, .put("\(number)", Self.text("x")))
    }
    var next = decoded(in: bench.handle(.turnEnded))
    var order: [UInt64] = []
    while let number = next.first {
      #expect(next.count == 1)
      order.append(number)
      #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
      next = decoded(in: finish(number, in: &bench))
    }
    #expect(order == [1, 4, 2, 3])
    #expect(bench.server.revision == 4)
  }

  @Test func `a connection that ends takes its action with it, and the next is decoded`() {
    var bench = bench()
    for number in [1, 2] as [UInt64] { bench.act(number, 1, .put("\(number)", Self.text("x"))) }
    #expect(decoded(in: bench.handle(.turnEnded)) == [1])
    let job = bench.server.action(for: ConnectionID(1))
    bench.handle(.closed(ConnectionID(1)))
    // Still one at a time: the thread is not free.
    #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
    #expect(bench.server.action(for: ConnectionID(1)) == nil)
    bench.handle(.actionDecoded(ConnectionID(1), job?.decoded()))
    #expect(decoded(in: bench.handle(.turnEnded)) == [2])
    _ = finish(2, in: &bench)
    #expect(bench.server.state.root == ["n": 0, "2": Self.text("x")])
  }

  @Test func `a short action that copies much asks for as much memory as a snapshot`() {
    var limits = Self.limits
    limits.largeActionBytes = 20
    var bench = bench([1000], limits)
    bench.act(1, 1, .put("big", .text(String(repeating: "x", count: 1 << 20))))
    _ = bench.handle(.turnEnded)
    _ = finish(1, in: &bench)
    #expect(bench.server.actionMemory(for: ConnectionID(1)) == nil)
    bench.act(1, 2, .copy(from: ["big"], to: ["a second one of it"]))
    _ = bench.handle(.turnEnded)
    let memory = bench.server.actionMemory(for: ConnectionID(1))
    #expect(memory == bench.server.snapshotMemory && memory ?? 0 > 3 << 20)
    _ = finish(1, in: &bench)
    #expect(bench.server.state.root.child("a second one of it") != nil)
    #expect(bench.server.actionMemory(for: ConnectionID(1)) == nil)
  }

  @Test func `a client that resends a large action has it done once`() {
    var bench = bench([1000])
    let token = Bench.token(1)
    bench.act(1, 1, .put("a", Self.text("x")))
    _ = bench.handle(.turnEnded)
    _ = finish(1, in: &bench)
    bench.handle(.closed(ConnectionID(1)))
    bench.join(2, token: token)
    bench.act(2, 1, .put("a", Self.text("x")), .put("b", 2))
    _ = bench.handle(.turnEnded)
    let said = bench.said(to: 2, finish(2, in: &bench))
    #expect(bench.server.revision == 2)
    let outcomes = said.compactMap { message in
      if case .acknowledgement(let outcome) = message { outcome } else { nil }
    }
    #expect(outcomes.map(\.first) == [1, 2] && outcomes.map(\.last) == [1, 2])
  }

  @Test func `nothing is read from a client that does not read, decoded or not`() {
    var bench = bench([1000])
    bench.act(1, 1, .put("a", Self.text("x")))
    _ = bench.handle(.turnEnded)
    let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
    bench.handle(.blocked(ConnectionID(1), unsent: 1))
    bench.handle(.actionDecoded(ConnectionID(1), decoded))
    _ = bench.handle(.turnEnded)
    #expect(bench.server.revision == 0)
    bench.handle(.drained(ConnectionID(1)))
    #expect(bench.handle(.turnEnded).contains(.wake))
    // What was decoded has not waited for the client: it is decoded again.
    #expect(self.decoded(in: bench.handle(.turnEnded)) == [1])
    _ = finish(1, in: &bench)
    #expect(bench.server.revision == 1)
  }

  @Test func `a client that does not read keeps nobody from having an action decoded`() {
    var bench = bench()
    for number in [1, 2] as [UInt64] { bench.act(number, 1, .put("\(number)", Self.text("x"))) }
    bench.handle(.blocked(ConnectionID(1), unsent: 1))
    #expect(decoded(in: bench.handle(.turnEnded)) == [2])
    #expect(bench.server.action(for: ConnectionID(1)) == nil)
    _ = finish(2, in: &bench)
    bench.handle(.drained(ConnectionID(1)))
    _ = bench.turn()
    #expect(decoded(in: bench.handle(.turnEnded)) == [1])
    _ = finish(1, in: &bench)
    #expect(bench.server.revision == 2)
  }

  @Test func `nothing is decoded for a client that leaves`() {
    var bench = bench()
    bench.act(1, 1, .put("a", Self.text("x")))
    bench.handle(.stop(retryAfter: 1))
    #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
  }

  @Test func `what was decoded for a client that has gone is released beside the loop`() {
    var bench = bench()
    bench.server.keepRemains()
    for isLate in [true, false] {
      let number: UInt64 = isLate ? 1 : 2
      let id = ConnectionID(number)
      bench.act(number, 1, .put("a", Self.text("x")))
      _ = bench.handle(.turnEnded)
      let decoded = bench.server.action(for: id)?.decoded()
      _ = bench.server.takeRemains()
      if isLate { bench.handle(.closed(id)) }
      bench.handle(.actionDecoded(id, decoded))
      if !isLate { bench.handle(.closed(id)) }
      #expect(!bench.server.takeRemains().isEmpty)
    }
  }

  @Test func `bytes that wait are counted with those of unfinished frames`() throws {
    var limits = Self.limits
    limits.partialBytesPerUser = 1000
    var bench = bench([7, 7, 7, 8], limits)
    for number in [1, 2, 3, 4] as [UInt64] {
      bench.act(number, 1, .put("\(number)", Self.text("x")))
    }
    var commands = bench.handle(.turnEnded)
    for number in [1, 2, 3, 4] as [UInt64] { #expect(bench.goodbye(to: number, commands) == nil) }
    bench.handle(.received(ConnectionID(3), [0xff, 0, 0, 0] + [UInt8](repeating: 0, count: 60)))
    commands = bench.handle(.turnEnded)
    let goodbye = try #require(bench.goodbye(to: 3, commands))
    #expect(goodbye.limit?.name == "partialBytesPerUser")
    // Those of the others are done.
    _ = finish(1, in: &bench)
    _ = finish(4, in: &bench)
    _ = finish(2, in: &bench)
    #expect(bench.server.revision == 3)
  }

  @Test func `the next process decodes what the former one had not`() throws {
    var bench = bench([1000])
    bench.say(1, action(1, .put("a", Self.text("x"))), action(2, .put("b", 2)))
    _ = bench.handle(.turnEnded)
    _ = try bench.handOver(limits: Self.limits)
    // Nothing else is read meanwhile: it would be kept with the action.
    #expect(bench.taken.contains(.pauseReading(ConnectionID(1))))
    #expect(bench.turn().contains(.resumeReading(ConnectionID(1))))
    #expect(bench.server.state.root == ["n": 0, "a": Self.text("x"), "b": 2])
  }

  @Test func `a process that has handed over does nothing more`() throws {
    var bench = bench([1000])
    bench.act(1, 1, .put("a", Self.text("x")))
    _ = bench.handle(.turnEnded)
    let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
    bench.handle(.handingOver(retryAfter: 1))
    #expect(bench.handle(.actionDecoded(ConnectionID(1), decoded)).isEmpty)
    #expect(bench.handle(.acted(.put("b", 1))).isEmpty)
    #expect(bench.handle(.turnEnded).isEmpty)
    #expect(bench.server.revision == 0)
  }

  // MARK: What it was

  @Test(
    arguments: [
      [0x84, 0x04, 0x01, 0x00, 0x83, 0x00, 0x81, 0x61, 0x61],
      [0x84, 0x04, 0x01, 0x00, 0x83, 0x18, 0x63, 0x81, 0x61, 0x61],
      [0x84, 0x04, 0x02, 0x00, 0x83, 0x00, 0x81, 0x61, 0x61],
      [0x84, 0x04, 0x01, 0x07, 0x83, 0x00, 0x81, 0x61, 0x61],
    ] as [[UInt8]])
  func `whatever is wrong with it is answered as for a small one`(head: [UInt8]) {
    let good = [UInt8]([0x79, 0x01, 0x00]) + [UInt8](repeating: 0x61, count: 256)
    let bad = [UInt8]([0x79, 0x01, 0x00]) + [UInt8](repeating: 0xff, count: 256)
    for item in [head + good, head + bad, head + good + [0], head + good.dropLast()] {
      let framed = Frame.encode { $0.bytes += item }
      var answers: [[ServerMessage]] = []
      for largest in [200, Int.max] {
        var limits = Limits()
        limits.largeActionBytes = largest
        var bench = bench([1000], limits)
        bench.handle(.received(ConnectionID(1), framed))
        answers.append(bench.said(to: 1, bench.turn()))
      }
      #expect(answers[0] == answers[1])
    }
  }

  @Test func `one that the shell does not decode is decoded by the server`() {
    var bench = bench([1000])
    bench.act(1, 1, .put("a", Self.text("x")))
    _ = bench.handle(.turnEnded)
    bench.handle(.actionDecoded(ConnectionID(1), nil))
    _ = bench.handle(.turnEnded)
    #expect(bench.server.revision == 1)
  }

  @Test func `without enough memory it is refused`() {
    var bench = bench([1000])
    bench.measureMemory(free: 1 << 20, of: 1 << 30)
    bench.act(1, 1, .put("a", .array(TreeArray((0..<4000).map { .integer($0) }))))
    let said = bench.said(to: 1, bench.turn())
    #expect(said.contains { "\($0)".contains("bytes of memory left") })
    #expect(bench.server.revision == 0)
  }
}
