import CBOR
import Lockstep
import Values
import Wire

/// Reports on what the store does: its effects, and its latest actions with their causes.
extension Server {
  /// The answer to a query about effects or actions; nil when it is about something else.
  mutating func actionReport(
    _ name: String, _ arguments: [String], _ number: UInt64,
    _ connection: inout ServerSession
  ) -> Value? {
    switch name {
    case "effects":
      let rights = connection.rights
      return .array(TreeArray(core.runningEffects.map { describe($0, for: rights) }))
    case "effects.cancel":
      guard let what = arguments.first else { return Self.error("cancel which effect?") }
      // What that leads to is reduced in the next turn: this one's patches have been composed.
      let count = core.cancelEffects(what)
      return ["cancelled": Value(UInt64(count))]
    case "log":
      let count = arguments.first.flatMap { Int($0) } ?? 100
      return records(core.log.last(count), for: connection.rights)
    case "log.follow":
      let sequence = arguments.first.flatMap { UInt64($0) } ?? core.sequence
      connection.following = (number, sequence)
      if !followers.contains(connection.id) { followers.append(connection.id) }
      return records(core.log.since(sequence), &connection)
    case "why":
      guard let sequence = arguments.first.flatMap({ UInt64($0) }) else {
        return Self.error("why which action? Give its sequence number.")
      }
      let chain = core.log.chain(of: sequence)
      guard !chain.isEmpty else {
        return Self.error(
          "the log has no action \(sequence): the newest is \(core.sequence), and it keeps the latest "
            + "\(limits.logEntries)")
      }
      return records(chain, for: connection.rights)
    case "metrics": return .text(metrics)
    default: return shellReports[name]?()
    }
  }

  static var actionReports: [String] {
    ["effects", "effects.cancel", "log", "log.follow", "metrics", "why"]
  }

  /// What the server counts, and what the shell does, in the text format of OpenMetrics 1.0.
  private var metrics: String {
    let gauges: [(String, Int)] = [
      ("clients", connections.count), ("sessions", sessions.count), ("scopes", scopes.count),
      ("held_states", held.count), ("state_bytes", size.estimate),
      ("history_bytes", history.byteCount), ("effects", core.effectCount),
    ]
    let totals: [(String, UInt64)] = [
      ("revisions", core.revision), ("actions_taken", counters.actions),
      ("actions_rejected", counters.rejected), ("connections", counters.connections),
      ("snapshots", counters.snapshots), ("coalesced_revisions", counters.coalesced),
      ("goodbyes", counters.goodbyes),
    ]
    var text = ""
    for (name, value) in gauges {
      text += "# TYPE lockstep_\(name) gauge\nlockstep_\(name) \(value)\n"
    }
    for (name, value) in totals {
      text += "# TYPE lockstep_\(name) counter\nlockstep_\(name)_total \(value)\n"
    }
    if case .text(let more)? = shellReports["metrics"]?() { text += more }
    return text + "# EOF\n"
  }

  private static func error(_ text: String) -> Value { ["error": .text(text)] }

  /// What may quote the state is left out for who does not see the whole: keys, payloads, and what a
  /// feature says of a rejection.
  private func describe(_ effect: RunningEffect, for rights: Rights?) -> Value {
    var entries: [(String, Value)] = [
      ("id", .text(effect.id.description)), ("name", .text(effect.name)),
      ("action", .text(effect.action)), ("sequence", Value(effect.sequence)),
      ("startedMs", .integer((core.time.nanoseconds - effect.started.nanoseconds) / 1_000_000)),
      ("sent", Value(effect.sent)), ("place", .text(effect.place)),
      ("owned", .bool(effect.isOwned)),
    ]
    if rights.seesAll, let key = effect.keys.first {
      entries.append(("key", .text(key.description)))
    }
    if let client = effect.client { entries.append(("client", .text(client.description))) }
    return object(entries)
  }

  // MARK: The log

  private func records(_ records: [ActionRecord<R.Action>], for rights: Rights?) -> Value {
    ["records": .array(TreeArray(records.map { describe($0, for: rights) }))]
  }

  private func records(
    _ list: [ActionRecord<R.Action>], _ connection: inout ServerSession
  ) -> Value {
    if let last = list.last { connection.following?.sequence = last.sequence }
    return records(list, for: connection.rights)
  }

  private func describe(_ record: ActionRecord<R.Action>, for rights: Rights?) -> Value {
    var entries: [(String, Value)] = [
      ("sequence", Value(record.sequence)), ("origin", .text(record.cause.origin.description)),
      ("action", .text(record.name)), ("outcome", .text(text(record.outcome, for: rights))),
      ("revision", Value(record.revision)), ("time", .text(record.time.description)),
    ]
    if let parent = record.cause.parent { entries.append(("parent", Value(parent))) }
    if rights.seesAll, let payload = record.action.flatMap(payload) {
      entries.append(("payload", payload))
    }
    return object(entries)
  }

  /// An action in the form that people read.
  private func payload(_ action: R.Action) -> Value? {
    guard let actionNames else { return nil }
    var encoder = CBOREncoder()
    action.encode(into: &encoder)
    // What never travels, such as a reactor's mutation, has no such form.
    return try? CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      var named = CBOREncoder()
      try actionNames.value(from: &decoder, into: &named)
      return try CBORDecoder.read(named.bytes) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    }
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

  /// Make those who follow the log be composed for, if there is news.
  mutating func touchFollowers() {
    for id in followers where (connections[id]?.following?.sequence ?? .max) < core.sequence {
      touch(id)
    }
  }

  /// Tell a connection that follows the log what it has not been told: some hundred records a turn.
  mutating func report(_ connection: inout ServerSession) {
    guard let (query, sequence) = connection.following, sequence < core.sequence else { return }
    let list = Array(core.log.since(sequence).prefix(256))
    let frame = Self.frame(.report(number: query, records(list, &connection)))
    connection.output.append(frame)
  }
}
