import CBOR
import Journal
import Lockstep
import Records
import Schemas
import Values
import Wire

/// Converts rows of a journal to values, with the names that the schemas of its runs give.
struct RowForm {
  private struct Names {
    let run: JournalContents.Run
    let actions: Translation?
    let states: Translation?
  }

  /// The names of the runs, the newest first.
  private var names: [Names] = []

  init(_ runs: [JournalContents.Run]) {
    for run in runs.reversed() {
      if let known = names.last, known.run.schema == run.schema {
        names.append(Names(run: run, actions: known.actions, states: known.states))
        continue
      }
      let schema = Schema(kept: run.schema)
      names.append(
        Names(
          run: run,
          actions: schema.flatMap { try? Translation(from: $0, to: .names, root: .action) },
          states: schema.flatMap { try? Translation(from: $0, to: .names, root: .state) }))
    }
  }

  func value(of entry: JournalEntry) -> Value {
    let row = entry.row
    let names = names.first { names in
      names.run.began < row.revision
        || names.run.began == row.revision && names.run.time.nanoseconds <= row.time.nanoseconds
    }
    var members: TrieMap<String, Value> = [
      "sequence": Value(row.sequence), "revision": Value(row.revision),
      "time": .text(row.time.description), "origin": .text(row.cause.origin.description),
      "action": .text(row.name), "outcome": .text(Self.outcome(of: row)),
    ]
    if let client = row.cause.client, client.label != "" {
      members.updateValue(.text(client.label), forKey: "label")
    }
    if let answer = row.answer {
      members.updateValue(.text("\(answer.session)"), forKey: "session")
      members.updateValue(Value(answer.number), forKey: "number")
    }
    if let action = entry.action {
      let value = names?.actions.flatMap { try? $0.namedValue(of: Array(action)) }
      members.updateValue(value ?? .bytes(Array(action)), forKey: "payload")
    }
    if let change = row.change, let patch = entry.patch {
      members.updateValue(Value(change.base), forKey: "base")
      let operations = names?.states.flatMap { $0.operations(of: Array(patch)) }
      members.updateValue(operations ?? .bytes(Array(patch)), forKey: "patch")
    }
    return .object(members)
  }

  /// The outcome in the words of 'lockstep log'.
  private static func outcome(of row: JournalRow) -> String {
    switch row.answer?.outcome {
    case nil: row.change == nil ? "unchanged" : "changed"
    case .reduced: "changed"
    case .unchanged: "unchanged"
    case .swallowed: "swallowed"
    case .accepted: "accepted"
    case .rejected(let rejection): "rejected: \(rejection)"
    case .outcomeUnknown: "unknown"
    }
  }
}

extension Schema {
  /// A schema as a journal stores it; nil when the bytes are not a schema.
  init?(kept bytes: [UInt8]) {
    let schema = try? CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      try Schema(from: &decoder)
    }
    guard let schema else { return nil }
    self = schema
  }
}

extension Translation {
  /// A patch of the whole state as a JSON Patch; nil when it has no such form.
  fileprivate func operations(of patch: [UInt8]) -> Value? {
    try? CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      var named = CBOREncoder()
      guard try self.patch(at: place(at: .root), from: &decoder, into: &named) else {
        throw CBORError(.notAllowed("a patch that has no other form"), at: 0)
      }
      return try PatchOperations.operations(of: named.bytes)
    }
  }
}
