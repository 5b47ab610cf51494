import CBOR
import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// What the administrator sees when he looks around: the value at a former revision, what changed, and
/// what there is. All of it is as the ledger says.
extension Simulation {
  /// Ask for a look.
  mutating func look() throws(SimulationFailure) {
    guard let daemon else { return }
    let oldest = daemon.server.oldestRevision ?? 0
    let revision = oldest + Hashing.mix(administrator.turns) % (daemon.server.revision - oldest + 1)
    switch administrator.visits % 4 {
    case 0: try ask("past", "", "\(revision)")
    case 1: try ask("changes", "", "\(1 + revision % 40)", "\(revision + 2)")
    case 2: try ask("parts", "")
    default: try ask("parts", "", "1", "1000", "", "\(revision)")
    }
  }

  /// Answer the looks that have been taken, whatever has happened since.
  mutating func deliverLooks() throws(SimulationFailure) {
    let looked = administrator.looked
    administrator.looked = []
    for (query, finding) in looked {
      if case .report(let report) = finding { try check(look: report) }
      served = nil
      try deliver(finding.event(for: Administrator.id, query: query))
    }
  }

  private mutating func check(look bytes: [UInt8]) throws(SimulationFailure) {
    guard let report = try? value(in: bytes), case .object(let members) = report else {
      throw failure("a report cannot be read: \(bytes)")
    }
    if ReportError(report) != nil { return count("reports of what is not remembered") }
    guard let revision = report.child("revision").flatMap(number) else {
      throw failure("a report without a revision: \(report)")
    }
    if case .array(let rows)? = members["changes"] {
      for row in rows { try check(changes: row) }
    } else if case .array(let rows)? = members["parts"] {
      try check(parts: rows, of: report, at: revision)
    } else {
      try check(past: report, at: revision)
    }
  }

  private mutating func check(past report: Value, at revision: UInt64) throws(SimulationFailure) {
    guard let state = ledger.state(at: revision) else { return count("reports beyond the run") }
    count("reports of the past")
    guard try same(report.child("value"), encoded(state)) else {
      throw failure("revision \(revision) is said to have had another value")
    }
  }

  private mutating func check(changes row: Value) throws(SimulationFailure) {
    guard let revision = row.child("revision").flatMap(number), revision > 0,
      case .array(let places)? = row.child("places")
    else { throw failure("no row of changes: \(row)") }
    guard let old = ledger.state(at: revision - 1), let new = ledger.state(at: revision) else {
      return count("reports beyond the run")
    }
    count("reports of changes")
    if places.isEmpty { throw failure("revision \(revision) is said to have changed nothing") }
    // The paths of other states name their fields.
    guard let old = (old as? Document)?.root, let new = (new as? Document)?.root else { return }
    for place in places {
      guard case .text(let pointer)? = place.child("path"), let path = Path(pointer: pointer)
      else { throw failure("no place: \(place)") }
      let (from, to) = (old.scoped(to: path), new.scoped(to: path))
      guard try same(place.child("from"), from.map(encoded)),
        try same(place.child("to"), to.map(encoded)), from != to
      else {
        throw failure("revision \(revision) is said to have changed \(pointer) otherwise")
      }
    }
  }

  private mutating func check(
    parts rows: TreeArray<Value>, of report: Value, at revision: UInt64
  ) throws(SimulationFailure) {
    guard let state = ledger.state(at: revision) else { return count("reports beyond the run") }
    count("reports of parts")
    guard let root = (state as? Document)?.root else { return }
    var expected: Set<Path> = []
    if case .object(let members) = root {
      for (key, _) in members { expected.insert([.text(key)]) }
    }
    var found: Set<Path> = []
    for row in rows {
      if case .text(let pointer)? = row.child("path"), let path = Path(pointer: pointer) {
        found.insert(path)
      }
    }
    let bytes = report.child("whole")?.child("bytes").flatMap(number)
    guard found == expected, rows.count == expected.count, bytes == UInt64(encoded(root).count)
    else { throw failure("the parts of revision \(revision) are said to be \(rows)") }
  }

  private func number(_ value: Value) -> UInt64? {
    if case .integer(let number) = value { UInt64(exactly: number) } else { nil }
  }

  private func encoded(_ value: some Synchronizable) -> [UInt8] {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return encoder.bytes
  }

  private func value(in bytes: [UInt8]) throws(CBORError) -> Value {
    try CBORDecoder.read(bytes, depth: 256) { (decoder) throws(CBORError) in
      try Value(from: &decoder, seed: .unseeded)
    }
  }

  /// Whether what a report has of a value is that value; null is none.
  private func same(_ told: Value?, _ bytes: [UInt8]?) throws(SimulationFailure) -> Bool {
    do throws(CBORError) {
      switch (told, bytes) {
      case (.bytes(let told)?, let bytes?): return try value(in: told) == value(in: bytes)
      case (.null?, nil): return true
      default: return false
      }
    } catch {
      throw failure("a value in a report cannot be read: \(error)")
    }
  }
}
