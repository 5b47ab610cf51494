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

/// Shares of a turn: which connections of a user are read from and answered in it, and which wait.
@Suite struct ServerSharingTests {
  @Test func `a user who brings more than a share waits while others are there`() {
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
        limits: Limits { $0.turnBytesPerUser = 1000 })
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

  /// What one read brings may take seconds: each of these changes 3,000 mirrors, and is short.
  @Test func `what one read brings is held back when its actions have taken long`() {
    var bench = Bench()
    bench.join(1, uid: 7)
    bench.join(2, uid: 8)
    let count = 3000 as UInt64
    let object = Value.object(
      TrieMap(uniqueKeysWithValues: (1...count).map { ("\($0)", 0) }))
    bench.act(1, 1, .set(["x"], object), .set(["kept"], object))
    for number in 1...count {
      bench.say(1, .subscribe(subscription: number, ["x", .text("\(number)")], nil))
    }
    while bench.turn().contains(.wake) {}
    // While another one sends now and then.
    bench.say(2, .ping(1))
    let actions = (0..<40).map { index in
      ClientMessage.action(
        number: 3 + UInt64(index), .applied,
        payload: payload(
          index % 2 == 0 ? .set(["x"], 0) : .copy(from: ["kept"], to: ["x"])))
    }
    let before = bench.server.revision
    bench.handle(.received(ConnectionID(1), actions.flatMap { frame($0) }))
    #expect(bench.server.revision - before <= 2)
    var (most, last, turns) = (0 as UInt64, bench.server.revision, 0)
    while bench.turn().contains(.wake) || bench.server.revision < before + 40, turns < 10_000 {
      most = max(most, bench.server.revision - last)
      (last, turns) = (bench.server.revision, turns + 1)
    }
    #expect(bench.server.revision == before + 40 && most <= 2, "\(most)")
  }

  @Test func `those who wait for their share are read from by turns, though nobody says anything`()
  {
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
      limits: Limits { $0.turnBytesPerUser = 1000 }, at: now)
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
    var bench = Bench(limits: Limits { $0.connectionsPerUser = 2 })
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
    // A user that had much to do is not light at once.
    for number in [1, 3] as [UInt64] { bench.say(number, .ping(1)) }
    #expect(bench.server.readBytes == .max)
    _ = bench.turn()
    bench.pass(.seconds(1))
    bench.say(3, .ping(1))
    #expect(bench.server.readBytes == 512)
    // Nor is a user that exceeds a small share while others are light.
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
    var bench = Bench(limits: Limits { $0.turnBytesPerUser = 100 })
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
}
