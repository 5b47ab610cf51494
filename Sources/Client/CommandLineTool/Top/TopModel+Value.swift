import Values

extension TopModel {
  /// A look as JSON, with the rows that pass the filter of a view, in its order.
  func value(_ view: TopView) -> Value {
    let actions = look?.log.contents.map { _ in view.actions(of: self).map(\.value) }
    let clients = look?.clients.contents.map { _ in view.clients(of: self).map(\.withRates) }
    let effects = look?.effects.contents.map { _ in view.effects(of: self).map(\.value) }
    return [
      "actions": .array(of: actions), "clients": .array(of: clients),
      "effects": .array(of: effects),
      "memory": memory,
      "newActions": Value(newActions),
      "perSecond": [
        "actions": .rate(rates.actions), "bytesSent": .rate(rates.bytes),
        "coalesced": .rate(rates.coalesced), "processor": .rate(rates.processor),
        "rejected": .rate(rates.rejected), "revisions": .rate(rates.revisions),
        "snapshots": .rate(rates.snapshots),
      ],
      "seconds": .rate(seconds),
      "status": look?.status ?? .null,
      "unseenActions": Value(unseenActions),
    ]
  }

  private var memory: Value {
    func metric(_ name: String) -> Value {
      look?.metrics.contents?["lockstep_\(name)"].map { Value($0) } ?? .null
    }
    return [
      "historyBytes": metric("history_bytes"),
      "residentBytes": (look?.process?.residentBytes).map { Value($0) } ?? .null,
      "stateBytes": metric("state_bytes"), "stateMemoryBytes": metric("state_memory_bytes"),
    ]
  }
}

extension Value {
  /// An array; null if its elements are not known.
  fileprivate static func array(of values: [Value]?) -> Value {
    values.map { .array(TreeArray($0)) } ?? .null
  }

  /// A rate to three digits; null if it is not known.
  fileprivate static func rate(_ perSecond: Double?) -> Value {
    perSecond.map { .double(($0 * 1000).rounded() / 1000) } ?? .null
  }
}

extension TopModel.ActionRow {
  fileprivate var value: Value {
    [
      "action": .text(name), "count": Value(count), "perSecond": .rate(perSecond),
      "rejected": Value(rejected),
    ]
  }
}

extension TopModel.ClientRow {
  fileprivate var withRates: Value {
    guard case .object(var members) = value else { return value }
    members.updateValue(.rate(actionsPerSecond), forKey: "actionsPerSecond")
    members.updateValue(.rate(bytesPerSecond), forKey: "bytesPerSecond")
    members.updateValue(.bool(isOwn), forKey: "own")
    return .object(members)
  }
}
