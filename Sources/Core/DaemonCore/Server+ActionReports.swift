import Access
import CBOR
import Lockstep
import Schemas
import Values
import Wire

/// Reports on what the store does: its effects, and its latest actions with their causes.
extension Server {
  // MARK: Effects

  mutating func cancelEffects(_ arguments: [String]) -> Answer {
    guard let what = arguments.first else { return .error(.malformed, "cancel which effect?") }
    // Actions that follow from that are reduced in the next turn: this one's patches have been
    // composed.
    let count = core.cancelEffects(what)
    return .value(["cancelled": Value(UInt64(count))], work: 20 + 4 * count)
  }

  func writeEffects(
    from first: UInt64, into page: inout PageWriter, for rights: Rights?
  ) -> (rest: RunningReport.Rest?, work: Int) {
    var next = first
    let effects = core.runningEffects(from: first, limit: page.mostRows)
    for effect in effects {
      next = effect.id.rawValue + 1
      page.beginRow()
      write(effect, into: &page, for: rights)
      page.endRow()
      if page.isFull { break }
    }
    let isEnd = effects.isEmpty || core.runningEffects(from: next, limit: 1).isEmpty
    return (isEnd ? nil : .effects(from: next), 4 * page.rows + core.effectCount / 100 + 2)
  }

  /// Members that may quote the state are left out for clients that do not see all of it: keys,
  /// payloads, and a feature's text of a rejection.
  private func write(
    _ effect: RunningEffect, into page: inout PageWriter, for rights: Rights?
  ) {
    page.add("id", effect.id.description)
    page.add("name", effect.name)
    page.add("action", effect.action)
    page.add("sequence", effect.sequence)
    page.add(
      "startedMs",
      UInt64(clamping: (core.time.nanoseconds - effect.started.nanoseconds) / 1_000_000))
    page.add("sent", effect.sent)
    page.add("place", effect.place)
    page.add("owned", effect.isOwned)
    if rights.seesAll, let key = effect.keys.first { page.add("key", key.description) }
    if let client = effect.client { page.add("client", client.description) }
  }

  // MARK: The log

  func log(_ arguments: [String]) -> Answer {
    let count: Int
    if let argument = arguments.first {
      guard let number = Int(argument), number >= 0 else {
        return .error(.malformed, "log: how many actions? \(quoted(argument)) is no number")
      }
      count = number
    } else {
      count = 100
    }
    return .pages(.log(after: core.log.sequence(before: count), through: core.sequence))
  }

  func why(_ arguments: [String]) -> Answer {
    guard let sequence = arguments.first.flatMap({ UInt64($0) }) else {
      return .error(.malformed, "why which action? Give its sequence number.")
    }
    guard core.log[sequence] != nil else {
      return .error(.absent, absence(of: sequence))
    }
    return .pages(.why(sequence))
  }

  /// The reason that the log does not have an action.
  private func absence(of sequence: UInt64) -> String {
    let reason =
      if sequence == 0 || sequence > core.sequence {
        "the newest is \(core.sequence)"
      } else if sequence <= facts.firstSequence, core.log.count < core.log.capacity {
        "of former processes of the daemon it has what the journal still had when this one began"
      } else {
        "it keeps the latest \(limits.logEntries), and none that was rejected unseen"
      }
    return "the log has no action \(sequence): \(reason)"
  }

  private func quoted(_ text: String) -> String { "\"\(text.prefix(bytes: 80))\"" }

  func writeLog(
    after last: UInt64, through end: UInt64, into page: inout PageWriter, for rights: Rights?
  ) -> RunningReport.Rest? {
    var position = core.log.position(after: last)
    while position < core.log.count, !page.isFull {
      let record = core.log[position: position]
      if record.sequence > end { return nil }
      write(record, into: &page, for: rights)
      position += 1
    }
    guard position < core.log.count, core.log[position: position].sequence <= end else {
      return nil
    }
    return .log(after: core.log[position: position].sequence - 1, through: end)
  }

  func writeCauses(
    of sequence: UInt64, into page: inout PageWriter, for rights: Rights?
  ) -> RunningReport.Rest? {
    var sequence = sequence
    while let record = core.log[sequence] {
      write(record, into: &page, for: rights)
      // Invariant: a parent comes before its children, so this ends.
      guard let parent = record.cause.parent else { return nil }
      if page.isFull { return .why(parent) }
      sequence = parent
    }
    return nil
  }

  private func write(
    _ record: ActionRecord<R.Action>, into page: inout PageWriter, for rights: Rights?
  ) {
    page.beginRow()
    page.add("sequence", record.sequence)
    page.add("origin", record.cause.origin.description)
    page.add("action", record.name)
    page.add("outcome", text(record.outcome, for: rights))
    page.add("revision", record.revision)
    page.add("time", record.time.description)
    if let parent = record.cause.parent { page.add("parent", parent) }
    if let client = record.cause.client {
      page.add("pid", client.pid)
      page.add("uid", client.uid)
      if !client.label.isEmpty { page.add("label", client.label) }
    }
    if rights.seesAll, let payload = record.action.flatMap(payload) {
      page.add("payload", payload)
    }
    page.endRow()
  }

  /// An action in the form that people read; nil if it nests deeper than a report may, in which it
  /// is at the fifth level.
  private func payload(_ action: R.Action) -> Value? {
    guard let actionNames = facts.actionNames else { return nil }
    var encoder = CBOREncoder()
    action.encode(into: &encoder)
    // An action that never travels, such as a reactor's mutation, has no such form.
    return try? actionNames.namedValue(of: encoder.bytes, depth: CBORDecoder.defaultDepth - 4)
  }

  private func text(_ reduction: Reduction, for rights: Rights?) -> String {
    switch reduction {
    case .changed: "changed"
    case .unchanged: "unchanged"
    case .swallowed: "swallowed"
    case .accepted: "accepted"
    case .rejected(let rejection):
      "rejected: \(rights?.redacted(rejection, in: core.state) ?? rejection)"
    }
  }

  // MARK: Following

  /// Send all actions after a sequence number, until the query is ended.
  mutating func follow(
    _ arguments: [String], _ query: UInt64, _ connection: inout ServerSession
  ) -> Answer {
    var sequence = core.sequence
    if let argument = arguments.first {
      guard let number = UInt64(argument) else {
        return .error(
          .malformed, "log.follow: behind which action? \(quoted(argument)) is no number")
      }
      sequence = number
    }
    connections.follow(connection.id)
    connection.queries.following = Following(
      query: query, sequence: sequence, isBehind: sequence < core.sequence)
    return sequence < core.sequence ? .later : .value(["records": []], work: 5)
  }

  mutating func unfollow(_ connection: inout ServerSession) -> Answer {
    let wasFollowing = connection.queries.following != nil
    connection.queries.following = nil
    connections.unfollow(connection.id)
    return .value(["stopped": .bool(wasFollowing)], work: 5)
  }

  /// Queue the connections that follow the log for their turn, if there are new actions.
  mutating func lineUpFollowers() {
    for id in connections.followers {
      guard let place = connections.place(of: id),
        let following = connections[place: place].queries.following,
        following.sequence < core.sequence
      else { continue }
      connections[place: place].queries.following?.isBehind = true
      lineUp(place)
    }
  }

  /// Send the next actions to a connection that follows the log. Returns the work that it took.
  func follow(_ connection: inout ServerSession) -> Int {
    guard let following = connection.queries.following else { return 0 }
    var page = PageWriter(limits)
    page.beginPage(most: users.pageBytes(at: connection.account, clock.now))
    let rest = writeLog(
      after: following.sequence, through: core.sequence, into: &page, for: connection.rights)
    if case .log(let last, _)? = rest {
      connection.queries.following?.sequence = last
    } else {
      connection.queries.following?.sequence = core.sequence
      connection.queries.following?.isBehind = false
    }
    if page.rows > 0 {
      send(page, query: following.query, isLog: true, hasMore: false, &connection)
    }
    return 4 * page.rows + 2
  }
}
