import Lockstep
import Values
import Wire

extension Server {
  /// What a query is answered with: an object, or an error object that names the queries there are.
  func report(_ name: String, asking connection: ServerSession) -> Value {
    switch name {
    case "status": return status(for: connection.rights)
    case "clients": return clients(for: connection.rights)
    case "clients.closed": return closedReport
    case "limits":
      return object(limits.table.map { ($0.name, Value($0.value)) })
    default:
      let names =
        ["clients", "clients.closed", "limits", "status"] + Self.actionReports + shellReports.keys
      return [
        "error": .text(
          "there is no report \"\(name)\"; there are: \(names.sorted().joined(separator: ", "))")
      ]
    }
  }

  func object(_ members: [(String, Value)]) -> Value {
    var entries = TrieMap<String, Value>()
    for (key, value) in members { entries.updateValue(value, forKey: key) }
    return .object(entries)
  }

  private func status(for rights: Rights?) -> Value {
    // A digest would tell who may see a part whether what is hidden is what they guess.
    return object(
      about + [
        ("epoch", .text(String(epoch, radix: 16))),
        ("run", Value(run)),
        ("revision", Value(core.revision)),
      ] + (rights.seesAll ? [("digest", .text(digest().description))] : []) + [
        ("uptimeMs", Value(now.milliseconds(since: started))),
        ("clients", .integer(Int64(connections.count))),
        ("sessions", .integer(Int64(sessions.count))),
        ("scopes", .integer(Int64(scopes.count))),
        ("heldStates", .integer(Int64(held.count))),
        ("historyBytes", .integer(Int64(history.byteCount))),
        ("actions", Value(counters.actions)),
        ("rejected", Value(counters.rejected)),
        ("connections", Value(counters.connections)),
        ("snapshots", Value(counters.snapshots)),
        ("coalesced", Value(counters.coalesced)),
        ("goodbyes", Value(counters.goodbyes)),
        ("effects", .integer(Int64(core.effectCount))),
        ("durability", .text(keeper.durability.rawValue)),
        ("durableRevision", durableRevision.map { Value($0) } ?? .null),
        ("journalQueueBytes", .integer(Int64(keeper.queuedBytes))),
        ("journal", .text(keeper.failure ?? (keeper.durability == .none ? "none" : "healthy"))),
      ])
  }

  private func clients(for rights: Rights?) -> Value {
    .array(
      TreeArray(
        connections.keys.sorted().compactMap { id in
          connections[id].flatMap { $0.token == nil ? nil : client($0, for: rights) }
        }))
  }

  private func client(_ connection: ServerSession, for rights: Rights?) -> Value {
    let behind = connection.subscriptions.map { subscription -> UInt64 in
      switch subscription.progress {
      case .live, .lost: flushed
      case .lagging(let revision), .joining(_, let revision, _): revision
      }
    }
    let joining = connection.subscriptions.count { subscription in
      switch subscription.progress {
      case .joining, .lost: true
      case .live, .lagging: false
      }
    }
    let position = behind.min() ?? flushed
    // A path has keys, which tell of what stands there.
    let paths = connection.subscriptions.compactMap { subscription -> Value? in
      guard let place = scopes.index(of: subscription.scope) else { return nil }
      let path = scopes[index: place].path
      if case .nothing = sight(of: path, with: rights) { return nil }
      return .text(path.pointer)
    }
    return object([
      ("connection", Value(connection.id.rawValue)),
      ("pid", Value(connection.peer.pid)),
      ("uid", Value(connection.peer.uid)),
      ("label", .text(connection.label)),
      ("position", .text(Position(epoch: epoch, run: run, revision: position).description)),
      ("lagRevisions", Value(core.revision - min(position, core.revision))),
      ("lagBytes", .integer(Int64(connection.unsentBytes))),
      ("lagMs", Value(connection.blockedSince.map { now.milliseconds(since: $0) } ?? 0)),
      ("joining", .integer(Int64(joining))),
      ("scopes", .array(TreeArray(paths))),
      ("coalesced", Value(connection.counters.coalesced)),
      ("snapshots", Value(connection.counters.snapshots)),
      ("patches", Value(connection.counters.patches)),
      ("actions", Value(connection.counters.actions)),
      ("bytesSent", Value(connection.counters.bytesSent)),
    ])
  }
}
