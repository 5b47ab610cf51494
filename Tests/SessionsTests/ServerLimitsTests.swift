import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// Writes a long text after a short one.
private struct Echo: Reducer {
  enum Action: UInt64, SynchronizableAction, SynchronizableScalar, Equatable {
    case ask, answer

    var name: String { "\(self)" }
    func encode(into encoder: inout CBOREncoder) { encoder.encode(rawValue) }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      self = try decoder.unsigned() == 0 ? .ask : .answer
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .unsigned }
  }

  func reduce(into state: inout String, action: Action) -> Effect<Action> {
    state = action == .ask ? "?" : String(repeating: "!", count: 10_000)
    return action == .ask ? .send(.answer) : .none
  }
}

/// Limits on one user's part of shared resources.
@Suite struct ServerLimitsTests {
  private func limits(_ change: (inout Limits) -> Void) -> Limits {
    var limits = Limits()
    change(&limits)
    return limits
  }

  private func goodbye(_ bench: inout Bench, opening number: UInt64, uid: UInt64) -> Goodbye? {
    bench.open(number, uid: uid)
    return bench.goodbye(to: number, bench.turn())
  }

  @Test func `a user may have so many connections, and others are not touched by it`() throws {
    var bench = Bench(limits: limits { $0.connectionsPerUser = 2 })
    #expect(goodbye(&bench, opening: 1, uid: 7) == nil)
    #expect(goodbye(&bench, opening: 2, uid: 7) == nil)
    let refused = try #require(goodbye(&bench, opening: 3, uid: 7))
    #expect(refused.limit == LimitBreach("connectionsPerUser", limit: 2, observed: 3))
    #expect(refused.retryAfter != nil)
    #expect(goodbye(&bench, opening: 4, uid: 8) == nil)
    bench.handle(.closed(ConnectionID(3)))
    bench.handle(.closed(ConnectionID(1)))
    #expect(goodbye(&bench, opening: 5, uid: 7) == nil)
  }

  @Test func `a user may connect so often in a second`() throws {
    var bench = Bench(limits: limits { $0.connectionsPerSecond = 3 })
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(goodbye(&bench, opening: number, uid: 7) == nil)
    }
    let refused = try #require(goodbye(&bench, opening: 4, uid: 7))
    #expect(goodbye(&bench, opening: 5, uid: 8) == nil)
    #expect(refused.limit?.name == "connectionsPerSecond")
    bench.pass(.seconds(1))
    #expect(goodbye(&bench, opening: 14, uid: 7) == nil)
  }

  @Test func `a user that ends all connections has still used up what it had`() throws {
    var bench = Bench(
      ["a": .text(String(repeating: "x", count: 10_000))],
      limits: limits {
        $0.connectionsPerSecond = 3
        $0.turnBytesPerUser = 1000
      })
    bench.join(100, uid: 8)
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(goodbye(&bench, opening: number, uid: 7) == nil)
      bench.handle(.closed(ConnectionID(number)))
    }
    let refused = try #require(goodbye(&bench, opening: 4, uid: 7))
    #expect(refused.limit?.name == "connectionsPerSecond")
    bench.handle(.closed(ConnectionID(4)))
    bench.pass(.milliseconds(999))
    bench.handle(.tick)
    bench.join(5, uid: 7)
    bench.act(5, 1, .copy(from: ["a"], to: ["b"]))
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(5)))
    // Its debt is not worked off by turns in which it is away, and another user is alone.
    for _ in 0..<100 { #expect(!bench.turn().contains(.wake)) }
    bench.open(6, uid: 7)
    let hello = ClientMessage.hello(.init(versions: 1...1, label: ""))
    #expect(bench.say(6, hello).contains(.pauseReading(ConnectionID(6))))
    bench.handle(.closed(ConnectionID(6)))
    bench.pass(.seconds(1))
    bench.handle(.tick)
    bench.open(7, uid: 7)
    #expect(!bench.say(7, hello).contains(.pauseReading(ConnectionID(7))))
  }

  @Test func `a user who brings more than a share waits while others are there`() {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    bench.join(1, uid: 7)
    bench.join(2, uid: 7)
    bench.join(3, uid: 8)
    _ = bench.turn()
    let much = ClientMessage.query(number: 1, String(repeating: "x", count: 200))
    bench.say(2, .ping(1))
    let paused = bench.say(1, much)
    #expect(paused.contains(.pauseReading(ConnectionID(1))))
    #expect(paused.contains(.pauseReading(ConnectionID(2))))
    #expect(!bench.say(3, .ping(1)).contains(.pauseReading(ConnectionID(3))))
    // In each turn one connection resumes, in order: last the one that used up the share.
    let first = bench.turn()
    #expect(first.contains(.resumeReading(ConnectionID(2))))
    #expect(!first.contains(.resumeReading(ConnectionID(1))))
    let next = bench.turn()
    #expect(next.contains(.resumeReading(ConnectionID(1))))
    #expect(!next.contains(.resumeReading(ConnectionID(2))))
  }

  @Test func `a connection that ended while it waited is not the first again`() {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...2 as ClosedRange<UInt64> { bench.join(number, uid: 7) }
    bench.join(9, uid: 8)
    _ = bench.turn()
    let much = ClientMessage.query(number: 1, String(repeating: "x", count: 200))
    bench.say(2, .ping(1))
    bench.say(1, much)
    bench.handle(.closed(ConnectionID(2)))
    bench.open(3, uid: 7)
    // The turn of the one that has ended comes, and what another brings uses it up.
    #expect(!bench.turn().contains(.resumeReading(ConnectionID(1))))
    bench.say(3, .hello(.init(versions: 1...1, label: String(repeating: "x", count: 200))))
    #expect(bench.turn().contains(.resumeReading(ConnectionID(1))))
  }

  @Test func `a user whose action does much waits for some turns while others are there`() {
    for isShared in [true, false] {
      var bench = Bench(
        ["a": .text(String(repeating: "x", count: 10_000))],
        limits: limits { $0.turnBytesPerUser = 1000 })
      bench.join(1, uid: 7)
      bench.join(2, uid: isShared ? 8 : 7)
      _ = bench.turn()
      bench.act(1, 1, .copy(from: ["a"], to: ["b"]))
      var (turns, isPaused) = (0, false)
      repeat {
        let commands = bench.turn()
        turns += 1
        if commands.contains(.pauseReading(ConnectionID(1))) { isPaused = true }
        if commands.contains(.resumeReading(ConnectionID(1))) { isPaused = false }
        #expect(!isPaused || commands.contains(.wake))
        #expect(!commands.contains(.pauseReading(ConnectionID(2))))
      } while isPaused
      #expect((turns > 4) == isShared, "\(turns)")
    }
  }

  @Test func `an action that takes the values of thousands of mirrors is charged for these`() {
    var bench = Bench()
    bench.join(1, uid: 7)
    bench.join(2, uid: 8)
    let count = 3000 as UInt64
    func set(_ number: UInt64, _ value: Value) -> Bool {
      bench.act(1, number, .set(["x"], value))
      var isPaused = false
      for _ in 1...3 {
        let commands = bench.turn()
        if commands.contains(.pauseReading(ConnectionID(1))) { isPaused = true }
      }
      while bench.turn().contains(.wake) {}
      return isPaused
    }
    for number in 1...count {
      bench.say(1, .subscribe(subscription: number, ["x", .text("\(number)")], nil))
    }
    while bench.turn().contains(.wake) {}
    #expect(bench.server.load.scopes == Int(count))
    #expect(!set(1, 0) && !set(2, 1), "none of them has a value")
    let object = Value.object(
      TrieMap(uniqueKeysWithValues: (1...count).map { ("\($0)", 0) }))
    _ = set(3, object)
    #expect(set(4, 0), "short, and changes all of them")
    #expect(!set(5, 1))
  }

  @Test func `those who wait for their share are read from by turns, though nobody says anything`()
  {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...9 as ClosedRange<UInt64> { bench.join(number, uid: number < 9 ? 7 : 8) }
    _ = bench.turn()
    for number in 2...8 as ClosedRange<UInt64> { bench.say(number, .ping(1)) }
    bench.say(1, .query(number: 1, String(repeating: "x", count: 200)))
    var resumed: Set<UInt64> = []
    var commands: [Command] = []
    repeat {
      commands = bench.turn()
      for case .resumeReading(let id) in commands { resumed.insert(id.rawValue) }
    } while commands.contains(.wake)
    #expect(resumed == Set(1...8))
  }

  @Test func `what an action leads to is charged with it`() {
    let now = Instant(nanoseconds: 1_000_000_000)
    var server = Server(
      "", reducer: Echo(), seed: HashSeed(7), epoch: 9,
      limits: limits { $0.turnBytesPerUser = 1000 }, at: now)
    var commands: [Command] = []
    func handle(_ event: Event<Echo.Action>) { server.handle(event, at: now, into: &commands) }
    for number in [1, 2] as [UInt64] {
      let peer = Peer(pid: 1, uid: 10 + number, gid: 1)
      handle(.opened(ConnectionID(number), peer, Bench.token(number)))
      let hello = ClientMessage.hello(.init(versions: 1...1, label: ""))
      handle(.received(ConnectionID(number), frame(hello)))
    }
    handle(.turnEnded)
    commands = []
    let action = ClientMessage.action(number: 1, .applied, payload: [0])
    handle(.received(ConnectionID(1), frame(action)))
    handle(.turnEnded)
    handle(.turnEnded)
    #expect(server.state.utf8.count == 10_000)
    #expect(commands.contains(.pauseReading(ConnectionID(1))))
  }

  // MARK: Light users

  /// Two connections of user 7, and one of user 8.
  private func twoUsers() -> Bench {
    var bench = Bench()
    for number in 1...3 as ClosedRange<UInt64> { bench.join(number, uid: number < 3 ? 7 : 8) }
    bench.pass(.seconds(1))
    _ = bench.turn()
    return bench
  }

  private static let much = ClientMessage.query(number: 1, String(repeating: "x", count: 600))

  @Test func `while a user sends now and then, each turn has little of the others`() {
    var bench = twoUsers()
    #expect(!bench.say(1, .ping(1), Self.much).contains(.pauseReading(ConnectionID(1))))
    #expect(bench.server.readBytes == .max)
    _ = bench.turn()
    #expect(!bench.say(3, .ping(1)).contains(.pauseReading(ConnectionID(3))))
    #expect(bench.server.readBytes == 512)
    bench.say(2, .ping(1))
    #expect(bench.say(1, Self.much).contains(.pauseReading(ConnectionID(2))))
    // They go on in turns.
    #expect(bench.turn().contains(.resumeReading(ConnectionID(2))))
    #expect(bench.turn().contains(.resumeReading(ConnectionID(1))))
    _ = bench.turn()
    bench.pass(.milliseconds(99))
    #expect(bench.say(1, Self.much).contains(.pauseReading(ConnectionID(1))))
    for _ in 0..<3 { _ = bench.turn() }
    bench.pass(.milliseconds(1))
    #expect(bench.server.readBytes == 512)
    #expect(!bench.say(1, Self.much).contains(.pauseReading(ConnectionID(1))))
    #expect(bench.server.readBytes == .max)
  }

  @Test func `a user that has just come need not wait for much of the others`() {
    for hadMuch in [false, true] {
      var bench = twoUsers()
      if hadMuch { bench.say(3, Self.much) }
      bench.pass(.milliseconds(500))
      _ = bench.turn()
      // Before it has said anything.
      bench.open(4, uid: 8)
      #expect(bench.server.readBytes == (hadMuch ? .max : 512))
      #expect(bench.say(1, Self.much).contains(.pauseReading(ConnectionID(1))) == !hadMuch)
    }
  }

  /// The connections that are paused by what one says.
  private func paused(_ commands: [Command]) -> [UInt64] {
    commands.compactMap { if case .pauseReading(let id) = $0 { id.rawValue } else { nil } }
  }

  /// User 8 sends now and then; user 7 has so many connections.
  private func crowd(
    _ count: UInt64, _ state: Value = [:], limits: Limits = Limits()
  ) -> Bench {
    var bench = Bench(state, limits: limits)
    for number in 1...count { bench.join(number, uid: 7) }
    bench.join(1000, uid: 8)
    bench.pass(.seconds(1))
    _ = bench.turn()
    bench.say(1000, .ping(1))
    return bench
  }

  @Test(arguments: [ClientMessage.ping(1), much])
  func `those that say nothing do not wait, unless many others do in one turn`(
    message: ClientMessage
  ) {
    var bench = crowd(40)
    #expect(paused(bench.say(1, Self.much)) == [1])
    // Each that says something after the share has been used up waits from then on, and at last all.
    let most: UInt64 = message == Self.much ? 4 : 17
    for number in 2...most { #expect(paused(bench.say(number, message)) == [number]) }
    #expect(paused(bench.say(most + 1, message)) == Array(most + 2...40) + [most + 1])
    var (resumed, commands): ([UInt64], [Command]) = ([], [])
    repeat {
      commands = bench.turn()
      for case .resumeReading(let id) in commands { resumed.append(id.rawValue) }
    } while commands.contains(.wake)
    #expect(resumed == Array(1...most) + Array(most + 2...40) + [most + 1])
    // The next turns have shares of their own.
    bench.say(1000, .ping(1))
    for _ in 0..<20 {
      // Two for those that wait to resume, and one for them to say nothing.
      for _ in 0..<3 { _ = bench.turn() }
      #expect(paused(bench.say(1, Self.much)) == [1])
      #expect(paused(bench.say(2, .ping(1))) == [2])
    }
  }

  @Test func `fewer may say something while they wait for an action that took long`() {
    var bench = crowd(40, ["a": .text(String(repeating: "x", count: 10_000))])
    bench.act(1, 1, .copy(from: ["a"], to: ["b"]))
    let commands = bench.turn()
    #expect(paused(commands) == [1] && commands.contains(.wake))
    // As long as that takes, and not again in each turn.
    for number in 2...5 as ClosedRange<UInt64> {
      #expect(paused(bench.say(number, .ping(1))) == [number])
      if number % 2 == 0 { _ = bench.turn() }
    }
    #expect(paused(bench.say(6, .ping(1))) == Array(7...40) + [6])
  }

  @Test func `an action that was held back makes its connection wait, whoever says something`() {
    var limits = Limits()
    limits.largeActionBytes = 64
    var bench = crowd(3, ["a": .text(String(repeating: "x", count: 10_000))], limits: limits)
    bench.act(1, 1, .copy(from: ["a"], to: [.text(String(repeating: "b", count: 64))]))
    let id = ConnectionID(1)
    #expect(bench.handle(.turnEnded).contains(.decodeAction(id)))
    let job = bench.server.action(for: id)
    #expect(paused(bench.say(2, .ping(1))).isEmpty)
    let commands = bench.handle(.actionDecoded(id, job?.decoded())) + bench.handle(.turnEnded)
    #expect(commands.contains(.resumeReading(id)))
    #expect(paused(commands) == [2, 1] && commands.contains(.wake))
  }

  @Test func `others are not read from less for a client that is refused`() {
    var bench = Bench(limits: limits { $0.connectionsPerUser = 2 })
    for number in 1...4 as ClosedRange<UInt64> { bench.join(number, uid: number < 3 ? 7 : 8) }
    bench.pass(.seconds(1))
    _ = bench.turn()
    bench.open(5, uid: 8)
    #expect(bench.goodbye(to: 5, bench.turn()) != nil)
    #expect(bench.server.readBytes == .max)
  }

  @Test func `more of those who wait go on in a turn if each has little to say`() {
    for isLittle in [true, false] {
      var bench = Bench()
      for number in 1...100 as ClosedRange<UInt64> {
        bench.join(number, uid: number < 100 ? 7 : 8)
      }
      bench.pass(.seconds(1))
      _ = bench.turn()
      for number in 2...99 as ClosedRange<UInt64> { bench.say(number, .ping(1)) }
      bench.pass(.seconds(1))
      bench.say(100, .ping(1))
      bench.say(1, Self.much)
      var resumed: [Int] = []
      for _ in 0..<7 {
        let commands = bench.turn()
        var ids: [UInt64] = []
        for case .resumeReading(let id) in commands { ids.append(id.rawValue) }
        resumed.append(ids.count)
        for id in ids { bench.say(id, isLittle ? .ping(1) : Self.much) }
      }
      // Each costs two or three calls of the kernel, even with nothing to say: so there is a bound.
      #expect(resumed == (isLittle ? [1, 2, 2, 2, 2, 2, 2] : [1, 1, 1, 1, 1, 1, 1]))
    }
  }

  @Test func `users who both have much to do get whole shares, and are light again in time`() {
    var bench = twoUsers()
    for number in [1, 3] as [UInt64] {
      #expect(!bench.say(number, Self.much).contains(.pauseReading(ConnectionID(number))))
    }
    _ = bench.turn()
    // Who had much to do is not light at once.
    for number in [1, 3] as [UInt64] { bench.say(number, .ping(1)) }
    #expect(bench.server.readBytes == .max)
    _ = bench.turn()
    bench.pass(.seconds(1))
    bench.say(3, .ping(1))
    #expect(bench.server.readBytes == 512)
    // Nor who exceeds a small share when there are such.
    _ = bench.turn()
    bench.pass(.milliseconds(50))
    bench.say(3, Self.much)
    for _ in 0..<3 { _ = bench.turn() }
    bench.pass(.milliseconds(50))
    bench.say(3, .ping(1))
    #expect(bench.server.readBytes == .max)
  }

  @Test func `while a user sends now and then, few requests of others are answered in a turn`() {
    for isLight in [false, true] {
      var bench = twoUsers()
      if isLight { bench.say(3, .ping(0)) }
      for number in 1...50 as ClosedRange<UInt64> { bench.say(1, .ping(number)) }
      var answered: [Int] = []
      var commands: [Command]
      repeat {
        commands = bench.turn()
        answered.append(
          bench.said(to: 1, commands).count { if case .pong = $0 { true } else { false } })
      } while commands.contains(.wake)
      #expect(answered.reduce(0, +) == 50)
      #expect(answered[0] == (isLight ? 20 : 50))
    }
  }

  private func pongs(to number: UInt64, _ bench: Bench, _ commands: [Command]) -> Int {
    bench.said(to: number, commands).count { if case .pong = $0 { true } else { false } }
  }

  @Test
  func
    `a user that asks now and then is answered before one that asks for much, in every other turn`()
  {
    var bench = twoUsers()
    for id in 1...2 as ClosedRange<UInt64> {
      for number in 1...30 as ClosedRange<UInt64> { bench.say(id, .ping(number)) }
    }
    bench.say(3, .ping(0))
    // A user with a connection for which this turn has no work is heavy from now on.
    #expect(pongs(to: 1, bench, bench.turn()) == 20)
    var answered: [Int] = []
    for number in 31...40 as ClosedRange<UInt64> {
      bench.say(1, .ping(number))
      bench.say(3, .ping(number))
      let commands = bench.turn()
      #expect(pongs(to: 3, bench, commands) == 1)
      answered.append(pongs(to: 1, bench, commands) + pongs(to: 2, bench, commands))
    }
    #expect(answered == [0, 20, 0, 20, 0, 6, 0, 2, 0, 2])
    // It does not wait for a light user that is not heard.
    bench.say(1, .ping(50))
    #expect(pongs(to: 1, bench, bench.turn()) == 1)
  }

  @Test func `users that both ask now and then do not wait for each other, even for a long answer`()
  {
    var bench = twoUsers()
    // A report is more than a small share of work: it is paid by what is asked next.
    bench.say(3, .ping(0))
    bench.say(1, .query(number: 9, "status", arguments: []))
    _ = bench.turn()
    for number in 1...10 as ClosedRange<UInt64> {
      bench.say(1, .ping(number))
      bench.say(3, .ping(number))
      let commands = bench.turn()
      #expect(pongs(to: 3, bench, commands) == 1)
      if number > 4 { #expect(pongs(to: 1, bench, commands) == 1) }
    }
  }

  @Test func `an only user never waits while one of its connections brings it all`() {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...2 as ClosedRange<UInt64> { bench.join(number, uid: 7) }
    let much = ClientMessage.query(number: 1, String(repeating: "x", count: 200))
    for _ in 0..<3 { #expect(!bench.say(1, much).contains(.pauseReading(ConnectionID(1)))) }
    // A turn's bytes are not counted in the next one.
    _ = bench.turn()
    #expect(!bench.say(2, .ping(1)).contains(.pauseReading(ConnectionID(2))))
    #expect(!bench.say(1, .ping(1)).contains(.pauseReading(ConnectionID(1))))
  }

  /// Lets connections of one user say something in each turn in which they are read from, always in the
  /// same order, as the loop may find them. Returns how often each was read from, and how many were in each
  /// turn.
  private func flood(
    _ bench: inout Bench, turns: Int, _ bytes: [UInt64: Int]
  ) -> (served: [UInt64: Int], reads: [Int]) {
    var (paused, served, reads): (Set<UInt64>, [UInt64: Int], [Int]) = ([], [:], [])
    for _ in 0..<turns {
      var read = 0
      for number in bytes.keys.sorted() where !paused.contains(number) {
        guard let count = bytes[number], count > 0 else { continue }
        read += 1
        served[number, default: 0] += 1
        let message = ClientMessage.query(number: 1, String(repeating: "x", count: count))
        for case .pauseReading(let id) in bench.say(number, message) { paused.insert(id.rawValue) }
      }
      reads.append(read)
      for case .resumeReading(let id) in bench.turn() { paused.remove(id.rawValue) }
    }
    return (served, reads)
  }

  @Test func `two connections of an only user that bring a share end a turn, and all have theirs`()
  {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    let all = 1...20 as ClosedRange<UInt64>
    for number in all { bench.join(number, uid: 7) }
    _ = bench.turn()
    let (served, reads) = flood(
      &bench, turns: 200, Dictionary(uniqueKeysWithValues: all.map { ($0, 200) }))
    // At first each is known as one that says nothing.
    #expect(reads.first ?? 0 <= 12 && reads.dropFirst().max() == 1, "\(reads)")
    #expect(served.count == all.count)
    #expect((served.values.max() ?? 0) <= 3 * (served.values.min() ?? 0), "\(served)")
  }

  @Test(arguments: [false, true], [0, 20, 60])
  func `none waits for ever behind one that is always read from first`(
    isCrowded: Bool, little: Int
  ) {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...6 as ClosedRange<UInt64> { bench.join(number, uid: 7) }
    if isCrowded { bench.join(9, uid: 8) }
    _ = bench.turn()
    let (served, _) = flood(
      &bench, turns: 200, [1: little, 2: 200, 3: 200, 4: little, 5: 200, 6: little])
    #expect([2, 3, 5].allSatisfy { (served[$0] ?? 0) >= 15 }, "\(served)")
    #expect(little == 0 || [1, 4, 6].allSatisfy { (served[$0] ?? 0) >= 15 }, "\(served)")
  }

  @Test(arguments: [2, 80, 150, 300])
  func `one that brings it all is soon read from in each turn again`(silent: Int) {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...UInt64(silent) { bench.join(number, uid: 7) }
    _ = bench.turn()
    for _ in 0..<2 {
      // Another says something behind it.
      bench.say(1, Self.much)
      bench.say(UInt64(silent), .ping(1))
      let (served, _) = flood(&bench, turns: 60, [1: 200])
      #expect((served[1] ?? 0) >= 40, "\(served)")
    }
  }

  @Test func `who waits for others' sake goes on when they are gone`() {
    var bench = Bench(limits: limits { $0.turnBytesPerUser = 100 })
    for number in 1...4 as ClosedRange<UInt64> { bench.join(number, uid: number < 4 ? 7 : 8) }
    _ = bench.turn()
    for number in 2...3 as ClosedRange<UInt64> { bench.say(number, .ping(1)) }
    bench.say(1, .query(number: 1, String(repeating: "x", count: 200)))
    bench.handle(.closed(ConnectionID(4)))
    let commands = bench.turn()
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(commands.contains(.resumeReading(ConnectionID(number))))
    }
  }

  @Test func `a user may send so many actions in a second, and is told of the others`() {
    var bench = Bench(limits: limits { $0.actionsPerSecond = 2 })
    bench.join(1)
    bench.act(1, 1, .put("n", 1), .put("n", 2), .put("n", 3))
    let outcomes = bench.said(to: 1, bench.turn()).compactMap {
      if case .acknowledgement(let answer) = $0 { answer.outcome } else { nil }
    }
    guard outcomes.count == 2, case .rejected(let rejection) = outcomes[1] else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(outcomes[0] == .reduced)
    #expect(rejection.message.contains("more than 2 actions a second"))
    #expect(bench.server.state.root == ["n": 2])
  }

  @Test func `subscriptions of a user are counted over its connections`() {
    var bench = Bench(limits: limits { $0.subscriptionsPerUser = 1 })
    bench.join(1)
    bench.join(2)
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    guard case .subscribed(let refused)? = bench.said(to: 2, bench.settle()).first else {
      Issue.record("no answer")
      return
    }
    #expect(refused.continuation == .refused && refused.reason == .limit)
    bench.say(1, .unsubscribe(subscription: 1))
    _ = bench.turn()
    bench.say(2, .subscribe(subscription: 2, .root, nil))
    guard case .subscribed(let granted)? = bench.said(to: 2, bench.settle()).first else {
      Issue.record("no answer")
      return
    }
    #expect(granted.continuation == .snapshot)
  }

  @Test func `why a connection ended can be asked afterwards`() throws {
    var bench = Bench(limits: limits { $0.connectionsPerUser = 1 })
    bench.join(1)
    bench.open(2)
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(2)))
    bench.join(3, uid: 8)
    bench.handle(.closed(ConnectionID(3)))
    bench.say(1, .query(number: 1, "clients.closed"))
    guard case .report(_, .array(let closed), _)? = bench.said(to: 1, bench.turn()).first else {
      Issue.record("no report")
      return
    }
    let entries = closed.compactMap { value -> TrieMap<String, Value>? in
      if case .object(let entries) = value { entries } else { nil }
    }
    #expect(entries.map { $0["cause"] } == ["limit", "lost"])
    #expect(entries.first?["limit"] == "connectionsPerUser")
    #expect(entries.first?["observed"] == 2)
  }

  // MARK: Old states

  @Test func `a user's slow clients do not take what those of another stand at`() {
    var limits = Limits()
    limits.heldStates = 3
    limits.heldStatesPerUser = 2
    var bench = Bench(limits: limits)
    for number in 1...5 as ClosedRange<UInt64> {
      bench.join(number, uid: number == 1 ? 1 : 2)
      bench.say(number, .subscribe(subscription: 1, .root, nil))
    }
    bench.join(9, uid: 3)
    _ = bench.settle()
    // Each is at a revision of its own.
    for number in 1...5 as ClosedRange<UInt64> {
      bench.handle(.blocked(ConnectionID(number), unsent: 5))
      bench.act(9, number, .put("n", .integer(Int64(number))))
      _ = bench.turn()
      #expect(bench.server.load.heldStates <= 3)
    }
    #expect(bench.server.load.heldStates == 3)
    for number in 1...5 as ClosedRange<UInt64> { bench.handle(.drained(ConnectionID(number))) }
    let commands = bench.turn()
    let isSnapshot = (1...5).map { number in
      bench.said(to: UInt64(number), commands).contains {
        if case .snapshot = $0 { true } else { false }
      }
    }
    #expect(isSnapshot == [false, true, true, false, false])
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `two clients of a user at one state hold it once each`() {
    var limits = Limits()
    limits.heldStatesPerUser = 1
    var bench = Bench.withSubscribers(2, limits: limits)
    bench.handle(.blocked(ConnectionID(1), unsent: 5))
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.server.act(.put("n", 1))
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(1)))
    #expect(bench.server.load.heldStates == 1)
    bench.handle(.drained(ConnectionID(2)))
    #expect(bench.said(to: 2, bench.turn()).count == 1 && bench.server.load.heldStates == 0)
  }

  // MARK: The size of the state

  private func answers(_ bench: borrowing Bench, _ commands: [Command]) -> [String] {
    bench.said(to: 1, commands).compactMap { message in
      guard case .acknowledgement(let answer) = message else { return nil }
      if case .rejected(let why) = answer.outcome { return "\(why.code) \(why.message)" }
      return "\(answer.outcome)"
    }
  }

  @Test func `a state that is too large only takes what makes it smaller`() {
    var limits = Limits()
    limits.stateBytes = 10_000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.handle(.tick)
    #expect(bench.measurements == 1)
    bench.measure()
    func text(_ number: UInt64) -> Value { .text(String(repeating: "\(number % 10)", count: 900)) }
    // Overwritten often: patches add up, and the state stays small.
    for number in 1...50 as ClosedRange<UInt64> {
      bench.act(1, number, .put("a", text(number)))
      #expect(answers(bench, bench.turn()) == ["reduced"])
      if bench.measurements > 1 { bench.measure() }
    }
    #expect(bench.measurements < 20)
    var number: UInt64 = 50
    var last: [String] = []
    while last.isEmpty || last == ["reduced"], number < 100 {
      number += 1
      bench.act(1, number, .put("k\(number)", text(number)))
      last = answers(bench, bench.turn())
      bench.measure()
    }
    let size = StateMeasure(of: bench.server.state).memory
    #expect(size > 10_000 && size < 12_000)
    #expect(
      last == [
        "7 the state takes up to \(size) bytes of memory, and stateBytes is 10000: until it takes "
          + "less, only actions of at most 128 bytes are done, such as removals"
      ])
    let before = bench.measurements
    bench.act(1, number + 1, .remove(["k51"]), .remove(["k52"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    // Measured again within a second.
    bench.handle(.tick)
    #expect(bench.measurements == before + 1)
    bench.measure()
    bench.act(1, number + 3, .put("again", text(number)))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }

  @Test func `a first action that makes it too large is measured at once`() {
    var limits = Limits()
    limits.stateBytes = 1000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.act(1, 1, .put("a", .text(String(repeating: "x", count: 9000))))
    _ = bench.turn()
    #expect(bench.measurements == 1)
    bench.measure()
    bench.act(1, 2, .remove(["a"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }

  @Test func `small actions do not make a state grow without a limit`() {
    var limits = Limits()
    limits.stateBytes = 10_000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.handle(.tick)
    bench.measure()
    var last: [String] = []
    for number in 1...1000 as ClosedRange<UInt64> {
      bench.act(1, number, .put("key of some length \(number)", .integer(Int64(number))))
      last = answers(bench, bench.turn())
      if number.isMultiple(of: 10) {
        bench.handle(.tick)
        bench.measure()
      }
    }
    #expect(last.first?.contains("stateBytes is 10000: no action of clients is done") == true)
    #expect(StateMeasure(of: bench.server.state).memory < 12_000)
    // The daemon's own actions are not limited.
    let revision = bench.server.revision
    bench.server.act(.set([], [:]))
    #expect(bench.server.revision == revision + 1)
  }

  @Test func `one action that is much too large for the state can be undone`() {
    var limits = Limits()
    limits.stateBytes = 1000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.act(1, 1, .put("a", .text(String(repeating: "x", count: 5000))))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    bench.handle(.tick)
    bench.measure()
    bench.act(1, 2, .put("b", .text(String(repeating: "x", count: 500))))
    #expect(answers(bench, bench.turn()).first?.hasPrefix("7 ") == true)
    bench.act(1, 3, .remove(["a"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    bench.handle(.tick)
    bench.measure()
    bench.act(1, 4, .put("b", .text(String(repeating: "x", count: 500))))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }
}
