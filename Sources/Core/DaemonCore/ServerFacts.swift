import Lockstep
import Schemas
import Values

/// The facts that a server has from its start, and that never change.
struct ServerFacts: Sendable {
  let limits: Limits
  let schema: Schema
  let schemaFingerprint: UInt64
  /// Translates logged actions into the form that people read; nil if the schema does not allow it.
  let actionNames: Translation?
  /// The sequence number of the last action of former processes: the log begins after it.
  let firstSequence: UInt64
  /// The report "limits".
  let limitsReport: Value
  /// The shell's facts about the process, for the report "status".
  let about: [(String, Value)]
  /// Whether the shell has metrics of its own, for the report "metrics".
  let hasShellMetrics: Bool

  init<State>(_ setup: ServerSetup<State>, schema: Schema) {
    limits = setup.limits
    self.schema = schema
    schemaFingerprint = schema.fingerprint
    actionNames = try? Translation(from: schema, to: .names, root: .action)
    firstSequence = setup.kept.sequence
    var entries = TrieMap<String, Value>()
    for (name, value) in limits.table { entries.updateValue(Value(value), forKey: name) }
    limitsReport = .object(entries)
    about = setup.about
    hasShellMetrics = setup.hasShellMetrics
  }
}
