import CBOR
import EventLoop
import LockstepClient
import Schemas
import Values
import Wire

/// What the daemon remembers of its past.
extension Client {
  /// The value at a path at a revision; nil if there was none.
  func value(at path: PathArgument, revision: UInt64) async throws -> Value? {
    let scope = path.scope
    let report = try await report(.past, [scope.pointer, "\(revision)"])
    return try named(report.child("value"), at: scope)?.value(at: path.rest)
  }

  /// A change of the value at a path.
  struct PastChange {
    let revision: UInt64
    let old: Value?
    let new: Value?
  }

  /// The latest changes of the value at a path's scope before a revision, and the revision
  /// before which earlier ones may be; nil if there are none.
  func changes(
    of scope: Path, before: UInt64, count: Int
  ) async throws -> (changes: [PastChange], next: UInt64?) {
    let report = try await report(.changes, [scope.pointer, "\(count)", "\(before)"])
    guard case .array(let rows)? = report.child("changes") else {
      throw Failure(.goodbye, "the daemon's list of changes is none.")
    }
    var changes: [PastChange] = []
    for row in rows {
      guard let revision = row.child("revision")?.number else { continue }
      changes.append(
        PastChange(
          revision: revision, old: try named(row.child("from"), at: scope),
          new: try named(row.child("to"), at: scope)))
    }
    return (changes, report.child("next")?.number)
  }

  /// A value of a report, bytes in value form or null where there is none, by the schema's names.
  private func named(_ bytes: Value?, at scope: Path) throws -> Value? {
    guard case .bytes(var bytes)? = bytes else { return nil }
    do {
      if let schema = connection.schema, !isDocument {
        let names = try Translation(from: schema, to: .names, root: .state)
        bytes = try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
          var named = CBOREncoder()
          try names.value(at: names.place(at: scope), from: &decoder, into: &named)
          return named.bytes
        }
      }
      return try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    } catch {
      throw Failure(.goodbye, "the daemon's value at '\(scope.pointer)' cannot be read: \(error).")
    }
  }
}
