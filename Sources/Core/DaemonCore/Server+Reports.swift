import Access
import CBOR
import Lockstep
import Values
import Wire

/// A report that is sent page by page, each page when the last has been written: the part that is
/// still to come.
struct RunningReport: Sendable {
  let query: UInt64
  var rest: Rest
  /// The pages for a client of version 1, which gets them all in one report.
  var collected: PageWriter?

  enum Rest: Sendable, Equatable {
    /// Clients from this number on.
    case clients(from: UInt64)
    /// Closed connections from this ordinal on.
    case closed(from: UInt64)
    /// Effects from this number on.
    case effects(from: UInt64)
    /// Actions after one sequence number, through another.
    case log(after: UInt64, through: UInt64)
    /// An action and its causes.
    case why(UInt64)
  }
}

extension Server {
  /// The answer to a query.
  enum Answer {
    case value(Value, work: Int)
    /// Later records of the log, while the query follows it.
    case later
    case pages(RunningReport.Rest)

    static func error(_ code: ReportError.Code, _ text: String) -> Answer {
      .value(ReportError(code, text).report, work: 5)
    }
  }

  /// Answer a query, or begin to. Returns the work that it took, in units.
  mutating func answerQuery(
    _ number: UInt64, _ name: String, _ arguments: [String], _ connection: inout ServerSession,
    _ commands: inout [Command]
  ) -> Int {
    let denial = reportDenial(of: name, to: connection.rights)
    let known = ReportName(rawValue: name)
    if known == .reloadPolicy, denial == nil || authority.isOwner(connection.peer) {
      return askShell(.reloadPolicy, number, &connection, &commands)
    }
    if let denial {
      send(denial, of: number, &connection)
      return 5
    }
    guard let known else {
      send(unknownReport(name), of: number, &connection)
      return 5
    }
    if known == .metrics, facts.hasShellMetrics {
      return askShell(.metrics(metrics), number, &connection, &commands)
    }
    if known == .pause || known == .resume {
      sendReport(number, setPause(known, arguments, connection, &commands), &connection)
      return 20
    }
    if let known = known.inspected {
      return inspect(known, arguments, number, &connection, &commands)
    }
    switch report(known, arguments, number, &connection) {
    case .value(let value, let work):
      sendReport(number, value, &connection)
      return work
    case .later: return 2
    case .pages(let rest):
      connection.requests.report = RunningReport(query: number, rest: rest)
      return 2
    }
  }

  /// Have the shell answer a query. Returns the work that it took, in units.
  private func askShell(
    _ query: ShellQuery, _ number: UInt64, _ connection: inout ServerSession,
    _ commands: inout [Command]
  ) -> Int {
    guard connection.queries.ask(number) else {
      send(
        ReportError(.refused, "a query of this number is being answered"), of: number, &connection)
      return 5
    }
    commands.append(.answer(connection.id, query: number, query))
    return 200
  }

  /// Have the shell look at the state, or its past, beside the loop. Returns the work that it took.
  private mutating func inspect(
    _ name: ReportName.Inspected, _ arguments: [String], _ number: UInt64,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Int {
    do throws(ReportError) {
      let uid = connection.peer.uid
      let query: ShellQuery
      var pending: PendingJump<R.State>?
      switch name {
      case .parts: query = .parts(try ListingRequest(arguments), uid: uid)
      case .past: query = .past(try PastRequest(past: arguments), uid: uid)
      case .changes: query = .past(try PastRequest(changes: arguments), uid: uid)
      case .jump(let kind):
        let found = try jump(JumpRequest(kind, arguments), number, connection)
        query = .past(PastRequest(change: found.target), uid: uid)
        pending = found
      }
      // What can be refused is not queued.
      if pending == nil { _ = try inspection(of: query, with: connection.rights) }
      guard connection.queries.askInspection(number) else {
        throw ReportError(
          .refused, "a query of this number, or another look at the state, is being answered")
      }
      if let pending { jumping.pending = pending }
      commands.append(.answer(connection.id, query: number, query))
      return 200
    } catch {
      send(error, of: number, &connection)
      // For a change to undo, thousands of revisions may have been looked at.
      return if case .jump = name { 200 } else { 5 }
    }
  }

  func sendReport(_ query: UInt64, _ value: Value, _ connection: inout ServerSession) {
    sendReport(query, value.encoded, &connection)
  }

  /// Send a report that is CBOR already.
  func sendReport(_ query: UInt64, _ report: [UInt8], _ connection: inout ServerSession) {
    var frame = Frame.encode { encoder in
      encoder.beginMessage(.report, extra: 0)
      encoder.encode(query)
      encoder.raw(report)
    }
    if frame.count - Frame.headLength > limits.frameBytes {
      let error = ReportError(.limit, "the report is larger than a frame may be")
      frame = Self.frame(.report(number: query, error.report))
    }
    connection.outbox.append(frame)
  }

  func send(_ error: ReportError, of query: UInt64, _ connection: inout ServerSession) {
    sendReport(query, error.report, &connection)
  }

  private mutating func report(
    _ name: ReportName, _ arguments: [String], _ query: UInt64, _ connection: inout ServerSession
  ) -> Answer {
    switch name {
    case .status: .value(status(for: connection.rights), work: 100)
    case .limits: .value(facts.limitsReport, work: 20)
    case .clients: .pages(.clients(from: 0))
    case .closedClients: .pages(.closed(from: 0))
    case .effects: .pages(.effects(from: 0))
    case .cancelEffects: cancelEffects(arguments)
    case .log: log(arguments)
    case .followLog: follow(arguments, query, &connection)
    case .unfollowLog: unfollow(&connection)
    case .why: why(arguments)
    case .metrics: .value(.text(metrics + OpenMetrics.end), work: 200)
    // Not reached: the shell was asked, or the client was denied.
    case .reloadPolicy, .parts, .past, .changes, .jump, .undo, .redo, .pause, .resume:
      .error(.refused, "the daemon does not answer this")
    }
  }

  private func unknownReport(_ name: String) -> ReportError {
    let found = name.prefix(bytes: limits.textBytes)
    let list = ReportName.list().joined(separator: ", ")
    return ReportError(.unknown, "there is no report \"\(found)\"; there are: \(list)")
  }

  func object(_ members: [(String, Value)]) -> Value {
    var entries = TrieMap<String, Value>()
    for (key, value) in members { entries.updateValue(value, forKey: key) }
    return .object(entries)
  }

  // MARK: Pages

  /// Send the next page of the connection's report. Returns the work that it took.
  func sendPage(_ connection: inout ServerSession) -> Int {
    guard var report = connection.requests.report else { return 0 }
    var page = report.collected ?? PageWriter(limits)
    // Nothing else refers to what is collected: else it would be copied with each page.
    connection.requests.report = nil
    report.collected = nil
    page.beginPage(most: users.pageBytes(at: connection.account, clock.now))
    let (rest, work) = write(report.rest, into: &page, for: connection)
    if let rest, connection.client.version < 2, page.byteCount < Self.mostCollectedBytes {
      connection.requests.report = RunningReport(
        query: report.query, rest: rest, collected: page)
      return work
    }
    if let rest, connection.client.version >= 2 {
      connection.requests.report = RunningReport(query: report.query, rest: rest)
    } else if rest != nil {
      let text =
        "the report has more than \(Self.mostCollectedBytes) bytes, and version 1 of the protocol "
        + "has no pages: ask for less"
      send(ReportError(.limit, text), of: report.query, &connection)
      return work
    }
    send(page, of: report, hasMore: rest != nil, &connection)
    return work
  }

  /// The most bytes of pages that are collected for a client of version 1.
  private static var mostCollectedBytes: Int { 1 << 20 }

  private func send(
    _ page: borrowing PageWriter, of report: RunningReport, hasMore: Bool,
    _ connection: inout ServerSession
  ) {
    let isLog: Bool
    switch report.rest {
    case .log, .why: isLog = true
    case .clients, .closed, .effects: isLog = false
    }
    send(page, query: report.query, isLog: isLog, hasMore: hasMore, &connection)
  }

  /// Send rows as an array; rows of the log as an object's only member.
  func send(
    _ page: borrowing PageWriter, query: UInt64, isLog: Bool, hasMore: Bool,
    _ connection: inout ServerSession
  ) {
    let rows = page.array
    let frame = Frame.encode { encoder in
      encoder.beginMessage(.report, extra: hasMore ? 1 : 0)
      encoder.encode(query)
      if isLog {
        encoder.map(1)
        encoder.encode("records")
      }
      encoder.raw(rows)
      if hasMore { encoder.encode(true) }
    }
    guard frame.count - Frame.headLength <= limits.frameBytes else {
      connection.requests.report = nil
      return send(
        ReportError(.limit, "a page of the report is larger than a frame may be"), of: query,
        &connection)
    }
    connection.outbox.append(frame)
  }

  /// Write the next rows of a report. Returns the rest, nil at its end, and the work.
  private func write(
    _ rest: RunningReport.Rest, into page: inout PageWriter, for asking: borrowing ServerSession
  ) -> (rest: RunningReport.Rest?, work: Int) {
    let rights = asking.rights
    switch rest {
    case .clients(let first): return writeClients(from: first, into: &page, for: asking)
    case .closed(let first):
      let next = connections.closed.write(from: first, into: &page)
      return (next.map { .closed(from: $0) }, 4 * page.rows + 2)
    case .effects(let first): return writeEffects(from: first, into: &page, for: rights)
    case .log(let last, let end):
      let rest = writeLog(after: last, through: end, into: &page, for: rights)
      return (rest, 4 * page.rows + 2)
    case .why(let sequence):
      let rest = writeCauses(of: sequence, into: &page, for: rights)
      return (rest, 4 * page.rows + 2)
    }
  }

  // MARK: Status

  /// The status that every client may know. The other members reveal how much was written, and so
  /// the length of values: they are for clients that see the whole state.
  private func status(for rights: Rights?) -> Value {
    let common: [(String, Value)] = [
      ("epoch", .text(String(timeline.epoch, radix: 16))),
      ("run", Value(timeline.run)),
      ("revision", Value(core.revision)),
      ("uptimeMs", Value(clock.uptimeMilliseconds)),
      ("pausedMs", pause.since.map { Value(clock.now.milliseconds(since: $0)) } ?? .null),
      ("durability", .text(journaling.durability.rawValue)),
      ("durableRevision", durableRevision.map { Value($0) } ?? .null),
      (
        "journal",
        .text(journaling.failure ?? (journaling.durability == .none ? "none" : "healthy"))
      ),
      ("mayAdminister", .bool(rights?.mayAdminister ?? true)),
      ("mayDoAll", .bool(mayJump(rights))),
    ]
    guard rights.seesAll else { return object(facts.about + common) }
    return object(
      facts.about + common + [
        // None if more and more changes while it is computed.
        ("digest", isDigestShort ? .text(digest().description) : .null),
        ("clients", .integer(Int64(connections.count))),
        ("sessions", .integer(Int64(sessions.count))),
        ("scopes", .integer(Int64(publication.scopes.count))),
        ("heldStates", .integer(Int64(publication.held.count))),
        ("pastSince", oldestRevision.map { Value($0) } ?? .null),
        ("historyBytes", .integer(Int64(publication.history.byteCount))),
        ("actions", Value(counters.actions)),
        ("rejected", Value(counters.rejected)),
        ("connections", Value(counters.connections)),
        ("snapshots", Value(counters.snapshots)),
        ("coalesced", Value(counters.coalesced)),
        ("goodbyes", Value(counters.goodbyes)),
        ("effects", .integer(Int64(core.effectCount))),
        ("journalQueueBytes", .integer(Int64(journaling.queuedBytes))),
      ])
  }

  // MARK: Clients

  private func writeClients(
    from first: UInt64, into page: inout PageWriter, for asking: borrowing ServerSession
  ) -> (rest: RunningReport.Rest?, work: Int) {
    var work = 2 + connections.count / 100
    var next = first
    for id in connections.ids.smallest(page.mostRows, from: ConnectionID(first)) {
      next = id.rawValue + 1
      // The session of the asking connection is moved out while it is composed.
      if id == asking.id {
        work += write(asking, into: &page, for: asking.rights)
      } else if let place = connections.place(of: id), connections[place: place].token != nil {
        work += write(connections[place: place], into: &page, for: asking.rights)
      }
      if page.isFull { break }
    }
    let isEnd = !connections.ids.contains { $0.rawValue >= next }
    return (isEnd ? nil : .clients(from: next), work)
  }

  /// Write the row of a client. Returns the work that it took.
  private func write(
    _ connection: borrowing ServerSession, into page: inout PageWriter, for rights: Rights?
  ) -> Int {
    let paths = shownPaths(of: connection, to: rights)
    page.beginRow()
    let (position, joining) = standing(of: connection.subscriptions)
    page.add("connection", connection.id.rawValue)
    page.add("pid", connection.peer.pid)
    page.add("uid", connection.peer.uid)
    page.add("label", connection.client.label)
    page.add("position", timeline.position(at: position).description)
    page.add("lagRevisions", core.revision - min(position, core.revision))
    page.add("lagMs", connection.flow.blockedSince.map { clock.now.milliseconds(since: $0) } ?? 0)
    page.add("joining", joining)
    page.add("subscriptions", connection.subscriptions.count)
    page.add("scopes", paths)
    page.add("coalesced", connection.counters.coalesced)
    page.add("snapshots", connection.counters.snapshots)
    page.add("patches", connection.counters.patches)
    page.add("actions", connection.counters.actions)
    // The number of bytes sent to another client reveals the length of values that only that client
    // may see.
    if rights.seesAll {
      page.add("lagBytes", connection.flow.unsentBytes)
      page.add("bytesSent", connection.counters.bytesSent)
    }
    page.endRow()
    return 4 + paths.count + connection.subscriptions.count / 50
  }

  /// The revision that all mirrors of a connection have reached, and the number of mirrors that
  /// wait for a snapshot.
  private func standing(of subscriptions: borrowing Subscriptions) -> (position: UInt64, Int) {
    if subscriptions.areLive { return (publication.flushed, 0) }
    var (position, joining) = (publication.flushed, 0)
    for index in subscriptions.indices {
      switch subscriptions[index].progress {
      case .live: break
      case .lagging(let revision): position = min(position, revision)
      case .joining(_, let revision, _), .differing(_, let revision, _),
        .resuming(_, _, after: let revision, _):
        position = min(position, revision)
        joining += 1
      case .lost: joining += 1
      }
    }
    return (position, joining)
  }

  /// The first paths that a client mirrors, as JSON Pointers. Paths that the asking client may not
  /// see are left out, because their keys reveal contents.
  private func shownPaths(of connection: borrowing ServerSession, to rights: Rights?) -> [String] {
    var paths: [String] = []
    var bytes = 0
    for index in connection.subscriptions.indices.prefix(32) where bytes < limits.textBytes {
      guard let place = publication.scopes.index(of: connection.subscriptions[index].scope) else {
        continue
      }
      let path = publication.scopes[index: place].path
      if case .nothing = sight(of: path, with: rights) { continue }
      paths.append(path.pointer.prefix(bytes: limits.textBytes))
      bytes += paths[paths.count - 1].utf8.count
    }
    return paths
  }
}

extension Sequence where Element: Comparable {
  /// The smallest elements that are not less than `first`, ascending, at most `limit`. O(n) if they
  /// are few.
  func smallest(_ limit: Int, from first: Element) -> [Element] {
    var found: [Element] = []
    for element in self where !(element < first) {
      if found.count == limit {
        guard element < found[limit - 1] else { continue }
        found.removeLast()
      }
      let place = found.firstIndex { element < $0 } ?? found.count
      found.insert(element, at: place)
    }
    return found
  }
}
