import Lockstep
import Schemas
import Values

/// What a server knows from its beginning on, and what never changes.
struct ServerFacts: Sendable {
  let limits: Limits
  let schema: Schema
  let schemaFingerprint: UInt64
  /// Turns logged actions into the form that people read; nil when the schema does not allow it.
  let actionNames: Translation?
  /// The last action of former processes: the log begins behind it.
  let firstSequence: UInt64
  /// The report "limits".
  let limitsReport: Value
  /// What the shell knows of the process, for the report "status".
  let about: [(String, Value)]
  /// Whether the shell counts something, too: for the report "metrics".
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
