import CBOR
import DaemonCore
import Documents
import Testing
import Values
import Wire

/// The patches that a mirror has missed are found beside the loop, if much has changed since.
@Suite struct ResumptionJobTests {
  private static var limits: Limits {
    var limits = Limits()
    limits.inlineDifferenceBytes = 0
    return limits
  }

  private func jobs(_ commands: [Command]) -> [SnapshotJobID] {
    commands.compactMap { if case .encodeSnapshot(let id) = $0 { id } else { nil } }
  }

  /// The patches of so many revisions that set `n` to these values.
  private func patches(_ values: ClosedRange<UInt8>, from base: UInt64) -> ServerMessage {
    .patch(
      scope: 0, from: base, values.map { .init(span: 1, patch: [0xa1, 0x61, 0x6e, $0]) })
  }

  private func subscribed(
    _ continuation: ServerMessage.Continuation, _ reason: ServerMessage.Reason = .none,
    at revision: UInt64
  ) -> ServerMessage {
    .subscribed(
      .init(subscription: 1, scope: 0, continuation, reason, revision: revision))
  }

  /// A writer that has set `n` to 1, 2 and 3, and so many clients that subscribe with a mirror of the
  /// first of these.
  private func returned(
    _ count: UInt64, _ limits: Limits = Self.limits
  ) -> (bench: Bench, commands: [Command]) {
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...count + 1 { _ = bench.join(client) }
    for value in 1...3 as ClosedRange<UInt64> { write(value, &bench) }
    for client in 2...count + 1 {
      bench.say(
        client, .subscribe(subscription: 1, .root, Position(epoch: 9, run: 1, revision: 1)))
    }
    let commands = bench.turn()
    return (bench, commands)
  }

  private func write(_ value: UInt64, _ bench: inout Bench) {
    bench.act(1, value, .put("n", .integer(Int64(value))))
    _ = bench.turn()
  }

  @Test func `clients of one position are told at once, and wait for one job`() {
    var (bench, commands) = returned(3)
    let waiting = jobs(commands)
    #expect(waiting.count == 1)
    for client in 2...4 as ClosedRange<UInt64> {
      #expect(bench.said(to: client, commands) == [subscribed(.patch, at: 3)])
    }
    for job in waiting { bench.encode(job) }
    commands = bench.turn()
    #expect(jobs(commands) == [])
    for client in 2...4 as ClosedRange<UInt64> {
      #expect(bench.said(to: client, commands) == [patches(2...3, from: 1)])
    }
    write(4, &bench)
    bench.act(1, 5, .put("n", 5))
    #expect(bench.said(to: 2, bench.turn()) == [patches(5...5, from: 4)])
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what is changed meanwhile comes with it, and much of it is found like that`() {
    for isMuch in [false, true] {
      var limits = Self.limits
      limits.inlineDifferenceBytes = 1
      var (bench, commands) = returned(1, limits)
      #expect(jobs(commands).isEmpty, "eight bytes are found at once")
      limits.inlineDifferenceBytes = 0
      (bench, commands) = returned(1, limits)
      let first = jobs(commands)
      if isMuch { write(4, &bench) }
      // It is answered meanwhile, with revisions that it must not take for its mirror's.
      bench.say(2, .ping(7))
      #expect(
        bench.said(to: 2, bench.turn()) == [.pong(7, revision: isMuch ? 4 : 3)])
      for job in first { bench.encode(job) }
      commands = bench.turn()
      if isMuch {
        #expect(bench.said(to: 2, commands) == [])
        let second = jobs(commands)
        #expect(second.count == 1)
        for job in second { bench.encode(job) }
        commands = bench.turn()
      }
      #expect(jobs(commands) == [])
      // What was found first is not looked for again.
      let more = isMuch ? [patches(4...4, from: 3)] : []
      #expect(bench.said(to: 2, commands) == [patches(2...3, from: 1)] + more)
      #expect(bench.server.load.heldStates == 0)
    }
  }

  @Test func `little that is changed meanwhile comes behind it`() {
    var limits = Self.limits
    limits.inlineDifferenceBytes = 1
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    for value in 1...4 as ClosedRange<UInt64> { write(value, &bench) }
    bench.say(2, .subscribe(subscription: 1, .root, Position(epoch: 9, run: 1, revision: 1)))
    let waiting = jobs(bench.turn())
    write(5, &bench)
    for job in waiting { bench.encode(job) }
    #expect(
      bench.said(to: 2, bench.turn()) == [patches(2...4, from: 1), patches(5...5, from: 4)])
  }

  /// Its job was begun for another, and leads to less than it was told to wait for.
  @Test func `a mirror that shares what was begun for another is not current before its target`() {
    var (bench, commands) = returned(1)
    var waiting = jobs(commands)
    bench.join(3)
    write(4, &bench)
    bench.say(3, .subscribe(subscription: 1, .root, Position(epoch: 9, run: 1, revision: 1)))
    commands = bench.turn()
    #expect(jobs(commands) == [] && bench.said(to: 3, commands) == [subscribed(.patch, at: 4)])
    for _ in 1...2 {
      #expect(waiting.count == 1)
      for job in waiting { bench.encode(job) }
      commands = bench.turn()
      waiting = jobs(commands)
    }
    for client in 2...3 as ClosedRange<UInt64> {
      #expect(
        bench.said(to: client, commands) == [patches(2...3, from: 1), patches(4...4, from: 3)])
    }
    #expect(waiting == [] && bench.server.load.jobs == 0)
  }

  /// Nothing of the part changes in the second round, and the patches go on from the last of the first.
  @Test func `between two rounds nothing is said of revisions that changed something else`() {
    var bench = Bench(
      ["part": ["n": 0, "text": .text(String(repeating: "x", count: 500))]], limits: Self.limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    func write(_ value: Int64) { bench.handle(.acted(.set(["part", "n"], .integer(value)))) }
    for value in 1...3 as ClosedRange<Int64> { write(value) }
    bench.handle(.acted(.put("other", 1)))
    bench.say(2, .subscribe(subscription: 1, ["part"], Position(epoch: 9, run: 1, revision: 1)))
    let first = jobs(bench.turn())
    bench.handle(.acted(.put("other", 2)))
    write(4)
    _ = bench.turn()
    for job in first { bench.encode(job) }
    let second = jobs(bench.turn())
    #expect(first.count == 1 && second.count == 1)
    for job in second { bench.encode(job) }
    let last = ServerMessage.SpanPatch(span: 3, patch: [0xa1, 0x61, 0x6e, 4])
    #expect(
      bench.said(to: 2, bench.turn()) == [
        patches(2...3, from: 1), .patch(scope: 0, from: 3, [last]),
      ])
  }

  @Test func `a part in which nothing has changed is current`() {
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: Self.limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    for value in 1...3 as ClosedRange<UInt64> { write(value, &bench) }
    bench.say(2, .subscribe(subscription: 1, ["text"], Position(epoch: 9, run: 1, revision: 1)))
    let waiting = jobs(bench.turn())
    write(4, &bench)
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    #expect(jobs(commands) == [], "what came meanwhile is elsewhere, too")
    #expect(bench.said(to: 2, commands) == [subscribed(.current, at: 4)])
  }

  @Test func `a mirror of what changes all the time is brought up to date in the end`() {
    var (bench, commands) = returned(1)
    var (value, waiting, said): (UInt64, _, [ServerMessage]) = (3, jobs(commands), [])
    while said.isEmpty, value < 30 {
      value += 1
      write(value, &bench)
      #expect(waiting.count == 1)
      for job in waiting { bench.encode(job) }
      commands = bench.turn()
      (said, waiting) = (bench.said(to: 2, commands), jobs(commands))
    }
    #expect(value == 11 && waiting == [], "eight rounds")
    #expect(said.count == 9 && said.last == patches(11...11, from: 10))
    bench.say(2, .ping(7))
    #expect(bench.said(to: 2, bench.turn()) == [.pong(7, revision: 11)])
  }

  @Test func `without memory for it, or without the history, the mirror gets a snapshot`() {
    for isRefused in [true, false] {
      var limits = Self.limits
      if !isRefused { limits.historyBytes = 12 }
      var (bench, commands) = returned(1, limits)
      let waiting = jobs(commands)
      #expect(waiting.count == 1)
      if !isRefused { for value in 4...30 as ClosedRange<UInt64> { write(value, &bench) } }
      for job in waiting {
        if isRefused { bench.handle(.snapshotImpossible(job)) } else { bench.encode(job) }
      }
      let begun = bench.subscribed(to: 2, bench.settle())
      #expect(begun?.continuation == .snapshot && begun?.reason == .history)
      #expect(bench.server.load.heldStates == 0)
    }
  }

  enum Departure: CaseIterable { case ofConnection, ofSubscription }

  /// A client departs before its jobs have ended.
  private func depart(_ departure: Departure, before waiting: [SnapshotJobID], _ bench: inout Bench)
  {
    switch departure {
    case .ofConnection: bench.handle(.closed(ConnectionID(2)))
    case .ofSubscription: bench.say(2, .unsubscribe(subscription: 1))
    }
    _ = bench.turn()
    for job in waiting { bench.encode(job) }
    #expect(bench.said(to: 2, bench.settle()) == [])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test(arguments: Departure.allCases)
  func `a client that departs meanwhile leaves nothing`(departure: Departure) {
    var (bench, commands) = returned(1)
    depart(departure, before: jobs(commands), &bench)
  }

  // MARK: Behind a snapshot

  /// Some clients, and changes while the snapshot is encoded for which these wait.
  private func joining(
    _ joining: ClosedRange<UInt64> = 2...2, historyBytes: Int = Limits().historyBytes
  ) -> (bench: Bench, waiting: [SnapshotJobID]) {
    var limits = Self.limits
    (limits.inlineSnapshotBytes, limits.historyBytes) = (0, historyBytes)
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...3 as ClosedRange<UInt64> { _ = bench.join(client) }
    for client in joining { bench.say(client, .subscribe(subscription: 1, .root, nil)) }
    let snapshot = jobs(bench.turn())
    for value in 1...2 as ClosedRange<UInt64> { write(value, &bench) }
    for job in snapshot { bench.encode(job) }
    let commands = bench.turn()
    for client in joining { #expect(bench.said(to: client, commands) == []) }
    return (bench, jobs(commands))
  }

  private func isSnapshot(_ message: ServerMessage) -> Bool {
    if case .snapshot = message { true } else { false }
  }

  @Test func `the patches behind a snapshot are found beside the loop, and come with it`() {
    var (bench, waiting) = joining()
    #expect(waiting.count == 1)
    write(3, &bench)
    for job in waiting { bench.encode(job) }
    // Much has changed again.
    let more = bench.turn()
    #expect(bench.said(to: 2, more) == [] && jobs(more).count == 1)
    // Another one joins, for whom the snapshot is there, and the patches behind it are not.
    bench.say(3, .subscribe(subscription: 1, .root, nil))
    let commands = bench.turn()
    #expect(jobs(commands).count == 1)
    #expect(bench.said(to: 3, commands) == [subscribed(.snapshot, .noPosition, at: 3)])
    for job in jobs(more) + jobs(commands) { bench.encode(job) }
    let after = bench.turn()
    let found = [
      2: [patches(1...2, from: 0), patches(3...3, from: 2)],
      3: [patches(1...3, from: 0)],
    ]
    for (client, patches) in found {
      let said = bench.said(to: UInt64(client), after)
      #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
      #expect(said.dropFirst().first.map(isSnapshot) == true)
      #expect(said.dropFirst(2) == patches[...])
    }
    write(4, &bench)
    bench.act(1, 5, .put("n", 5))
    #expect(bench.said(to: 3, bench.turn()) == [patches(5...5, from: 4)])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test(arguments: [false, true])
  func `a mirror that returns and one that joins at its revision wait for the same patches`(
    joinsFirst: Bool
  ) {
    var limits = Self.limits
    limits.inlineSnapshotBytes = 0
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...4 as ClosedRange<UInt64> { _ = bench.join(client) }
    write(1, &bench)
    bench.say(4, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    for value in 2...3 as ClosedRange<UInt64> { write(value, &bench) }
    var waiting: [SnapshotJobID] = []
    for isJoining in [joinsFirst, !joinsFirst] {
      let position = isJoining ? nil : Position(epoch: 9, run: 1, revision: 1)
      bench.say(isJoining ? 3 : 2, .subscribe(subscription: 1, .root, position))
      waiting += jobs(bench.turn())
    }
    #expect(waiting.count == 1)
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    let found = [patches(2...3, from: 1)]
    #expect(bench.said(to: 2, commands) == found)
    let said = bench.said(to: 3, commands)
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
    #expect(said.dropFirst().first.map(isSnapshot) == true && said.dropFirst(2) == found[...])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  /// There is no state from which a difference could lead: none is held while patches are found.
  @Test func `what is longer than the snapshot is found, too, once patches have been`() {
    var (bench, waiting) = joining()
    let text = String(repeating: "y", count: 1000)
    bench.act(1, 3, .put("text", .text(text)))
    _ = bench.turn()
    for job in waiting { bench.encode(job) }
    var commands = bench.turn()
    waiting = jobs(commands)
    #expect(bench.said(to: 2, commands) == [] && waiting.count == 1)
    for job in waiting { bench.encode(job) }
    commands = bench.turn()
    let said = bench.said(to: 2, commands)
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
    #expect(said.dropFirst(2).first == patches(1...2, from: 0))
    #expect(said.count == 4 && jobs(commands) == [])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  /// They are larger than a frame may be, and what they do is undone.
  @Test func `where no patch can say what came behind a snapshot, a difference may`() {
    var limits = Limits()
    (limits.inlineSnapshotBytes, limits.frameBytes, limits.snapshotPartBytes) = (0, 4096, 2000)
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 20_000))], limits: limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    let waiting = jobs(bench.turn())
    bench.handle(.acted(.put("more", .text(String(repeating: "y", count: 5000)))))
    bench.handle(.acted(.remove(["more"])))
    bench.handle(.acted(.put("n", 3)))
    _ = bench.turn()
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    let said = bench.said(to: 2, commands)
    #expect(waiting.count == 1 && jobs(commands) == [])
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
    #expect(said.last == difference(0...3))
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  /// One that is larger than a frame may be.
  @Test func `behind a change that no patch can say there is another snapshot, and not the same`() {
    var limits = Self.limits
    (limits.inlineSnapshotBytes, limits.frameBytes, limits.snapshotPartBytes) = (0, 4096, 2000)
    var bench = Bench(
      ["text": .text(String(repeating: "x", count: 20_000))], limits: limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    let first = jobs(bench.turn())
    bench.handle(.acted(.put("more", .text(String(repeating: "y", count: 5000)))))
    _ = bench.turn()
    var (rounds, waiting) = (0, first)
    var said: [ServerMessage] = []
    while !waiting.isEmpty, rounds < 10 {
      for job in waiting { bench.encode(job) }
      let commands = bench.turn()
      said += bench.said(to: 2, commands)
      waiting = jobs(commands)
      rounds += 1
    }
    #expect(rounds == 3, "a snapshot, the patches that are none, another snapshot")
    let parts = said.compactMap { if case .snapshot(let part) = $0 { part } else { nil } }
    #expect(parts.map(\.revision) == Array(repeating: 1, count: parts.count) && !parts.isEmpty)
    #expect(parts.last?.isLast == true)
  }

  /// They take less than the difference, and lead on from the snapshot that is there.
  @Test func `without memory for a difference behind a snapshot, the patches are found instead`() {
    var limits = Self.limits
    limits.inlineSnapshotBytes = 0
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    let snapshot = jobs(bench.turn())
    // More than the snapshot.
    bench.act(1, 1, .put("text", .text(String(repeating: "y", count: 1000))))
    _ = bench.turn()
    for job in snapshot { bench.encode(job) }
    let refused = jobs(bench.turn())
    #expect(refused.count == 1)
    for job in refused {
      for found in jobs(bench.handle(.snapshotImpossible(job))) { bench.encode(found) }
    }
    let said = bench.said(to: 2, bench.turn())
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 1))
    #expect(said.dropFirst().first.map(isSnapshot) == true && said.count == 3)
    if case .patch(0, from: 0, let patches)? = said.last {
      #expect(patches.map(\.span) == [1])
    } else {
      Issue.record("no patch: \(said)")
    }
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test(arguments: [Limits().historyBytes, 0])
  func `without memory for these, the subscription is refused as one for a snapshot is`(
    historyBytes: Int
  ) {
    var (bench, waiting) = joining(historyBytes: historyBytes)
    for job in waiting { bench.handle(.snapshotImpossible(job)) }
    let refused = bench.subscribed(to: 2, bench.settle())
    #expect(refused?.continuation == .refused && refused?.reason == .memory)
    #expect(bench.server.load.scopes == 0 && bench.server.load.heldStates == 0)
  }

  // MARK: Behind a snapshot, where the history does not lead on

  /// The patch between two revisions, at the later of which `n` is as much.
  private func difference(_ revisions: ClosedRange<UInt64>) -> ServerMessage {
    let (old, new) = (revisions.lowerBound, revisions.upperBound)
    return .patch(
      scope: 0, from: old, [.init(span: new - old, patch: [0xa1, 0x61, 0x6e, UInt8(new)])])
  }

  /// The number of revisions that a client got as a part of a patch over several, as is reported of it.
  private func coalesced(by client: UInt64, _ bench: inout Bench) -> Value? {
    bench.ask(1, "clients").value(at: [.integer(Int64(client) - 1), "coalesced"])
  }

  @Test func `the difference behind a snapshot is made beside the loop, and comes with it`() {
    var (bench, waiting) = joining(2...3, historyBytes: 0)
    #expect(waiting.count == 1)
    write(3, &bench)
    for job in waiting { bench.encode(job) }
    var commands = bench.turn()
    for client in 2...3 as ClosedRange<UInt64> { #expect(bench.said(to: client, commands) == []) }
    waiting = jobs(commands)
    #expect(waiting.count == 1)
    for job in waiting { bench.encode(job) }
    commands = bench.turn()
    for client in 2...3 as ClosedRange<UInt64> {
      let said = bench.said(to: client, commands)
      #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
      #expect(said.dropFirst().first.map(isSnapshot) == true)
      #expect(
        said.dropFirst(2) == [difference(0...2), difference(2...3)])
      // The first difference is over two revisions.
      #expect(coalesced(by: client, &bench) == 1)
    }
    write(4, &bench)
    bench.act(1, 5, .put("n", 5))
    #expect(bench.said(to: 3, bench.turn()) == [patches(5...5, from: 4)])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  /// Neither is a difference looked for, nor is the state needed from which it would lead.
  @Test(arguments: [false, true])
  func `a part in which nothing has changed meanwhile gets its snapshot`(isEvicted: Bool) {
    var limits = Self.limits
    (limits.inlineSnapshotBytes, limits.historyBytes) = (0, 0)
    if isEvicted { limits.heldStatesPerUser = 1 }
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...3 as ClosedRange<UInt64> { _ = bench.join(client) }
    bench.say(2, .subscribe(subscription: 1, ["text"], nil))
    bench.say(3, .subscribe(subscription: 1, ["n"], nil))
    let snapshots = jobs(bench.turn())
    for job in snapshots.dropFirst() { bench.encode(job) }
    _ = bench.turn()
    for value in 1...3 as ClosedRange<UInt64> {
      write(value, &bench)
      // The third one's state is held, too.
      if value == 2 { bench.handle(.blocked(ConnectionID(3), unsent: 5)) }
    }
    for job in snapshots.prefix(1) { bench.encode(job) }
    let commands = bench.turn()
    let said = bench.said(to: 2, commands)
    #expect(jobs(commands) == [] && said.first == subscribed(.snapshot, .noPosition, at: 3))
    #expect(said.dropFirst().first.map(isSnapshot) == true)
    #expect(said.last == subscribed(.current, at: 3) && said.count == 3)
    bench.handle(.drained(ConnectionID(3)))
    _ = bench.settle()
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test func `a state that changes all the time is followed at once in the end`() {
    var (bench, waiting) = joining(historyBytes: 0)
    var (value, said): (UInt64, [ServerMessage]) = (2, [])
    while said.isEmpty, value < 30 {
      value += 1
      write(value, &bench)
      #expect(waiting.count == 1)
      for job in waiting { bench.encode(job) }
      let commands = bench.turn()
      (said, waiting) = (bench.said(to: 2, commands), jobs(commands))
    }
    #expect(value == 10 && said.last == difference(9...10))
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 10))
    #expect(said.contains(difference(0...2)))
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test(arguments: [false, true])
  func `a client that lags at the snapshot's revision waits for the same difference`(isFirst: Bool)
  {
    var limits = Self.limits
    (limits.inlineSnapshotBytes, limits.historyBytes) = (0, 0)
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: 500))], limits: limits)
    for client in 1...3 as ClosedRange<UInt64> { _ = bench.join(client) }
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    // The snapshot that it got is of no use any more.
    write(1, &bench)
    bench.say(3, .subscribe(subscription: 1, .root, nil))
    let snapshot = jobs(bench.turn())
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    for value in 2...3 as ClosedRange<UInt64> { write(value, &bench) }
    var waiting: [SnapshotJobID] = []
    for isLagging in [isFirst, !isFirst] {
      if isLagging {
        bench.handle(.drained(ConnectionID(2)))
      } else {
        for job in snapshot { bench.encode(job) }
      }
      waiting += jobs(bench.turn())
    }
    #expect(waiting.count == 1)
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    #expect(bench.said(to: 2, commands) == [difference(1...3)])
    let said = bench.said(to: 3, commands)
    #expect(said.first == subscribed(.snapshot, .noPosition, at: 3))
    #expect(said.dropFirst(2) == [difference(1...3)])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test func `clients with snapshots of two revisions get what is behind their own`() {
    var (bench, first) = joining(historyBytes: 0)
    bench.say(3, .subscribe(subscription: 1, .root, nil))
    let second = jobs(bench.turn())
    write(3, &bench)
    for job in first + second { bench.encode(job) }
    // Both lack the difference from 2 to 3, one of them behind that from 0 to 2.
    let waiting = jobs(bench.turn())
    #expect(second.count == 1 && waiting.count == 2)
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    #expect(
      bench.said(to: 2, commands).dropFirst(2) == [difference(0...2), difference(2...3)])
    #expect(bench.said(to: 3, commands).dropFirst(2) == [difference(2...3)])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.jobs == 0)
  }

  @Test(arguments: Departure.allCases)
  func `a client that departs before the difference is there leaves nothing`(
    departure: Departure
  ) {
    var (bench, waiting) = joining(historyBytes: 0)
    depart(departure, before: waiting, &bench)
  }

  @Test func `no more of a connection are found at a time than the limit says`() {
    var limits = Self.limits
    limits.concurrentSnapshots = 2
    var bench = Bench(
      .object(
        TrieMap(
          uniqueKeysWithValues: (1...4).map {
            ("k\($0)", .text(String(repeating: "x", count: 500)))
          })),
      limits: limits)
    for client in 1...2 as ClosedRange<UInt64> { _ = bench.join(client) }
    for value in 1...3 as ClosedRange<UInt64> { write(value, &bench) }
    for number in 1...4 as ClosedRange<UInt64> {
      bench.say(
        2,
        .subscribe(
          subscription: number, [.text("k\(number)")], Position(epoch: 9, run: 1, revision: 1)))
    }
    func continuations(_ commands: [Command]) -> [ServerMessage.Continuation] {
      bench.said(to: 2, commands).compactMap { message in
        if case .subscribed(let begun) = message { begun.continuation } else { nil }
      }
    }
    let commands = bench.turn()
    #expect(jobs(commands).count == 2 && continuations(commands) == [.patch, .patch])
    for job in jobs(commands) { bench.encode(job) }
    #expect(continuations(bench.settle()) == [.current, .current, .snapshot, .snapshot])
  }
}
