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

  /// The latest changes of a path, the oldest first, each with the action that made it, if the log still
  /// has that. In as many requests as it takes: the daemon tells of the scope, which may have others.
  func history(
    of path: PathArgument, limit: Int
  ) async throws -> [(change: RevisionChanges, maker: LogRecord?)] {
    var found: [RevisionChanges] = []
    var before = UInt64.max
    while found.count < limit {
      let count = path.rest.keys.isEmpty ? limit - found.count : Self.pageChanges
      let page = try await changes(at: path, before: before, count: min(count, Self.pageChanges))
      found = page.changes + found
      guard let next = page.next else { break }
      before = next
    }
    var makers: [UInt64: LogRecord] = [:]
    let records = try LogRecord.records(of: await report(.log, ["\(UInt32.max)"]))
    for record in records where record.outcome.word == "changed" {
      if let revision = record.revision { makers[revision] = record }
    }
    return found.suffix(limit).map { ($0, makers[$0.revision]) }
  }

  /// The most changes that the daemon lists at a time.
  static var pageChanges: Int { 1000 }

  /// What some revisions changed at a path.
  struct ChangesPage {
    /// The oldest first.
    let changes: [RevisionChanges]
    /// The revision before which earlier ones may be; nil if there are none.
    let next: UInt64?
    /// The revision from which on changes are remembered.
    let since: UInt64
  }

  /// What each of the latest revisions before one changed at a path.
  func changes(
    at path: PathArgument, before: UInt64, count: Int
  ) async throws -> ChangesPage {
    let report = try await report(.changes, [path.scope.pointer, "\(count)", "\(before)"])
    guard case .array(let rows)? = report.child("changes") else {
      throw Failure(.goodbye, "the daemon's list of changes is none.")
    }
    var changes: [RevisionChanges] = []
    for row in rows {
      guard let revision = row.child("revision")?.number,
        case .array(let places)? = row.child("places")
      else { continue }
      var found: [PlaceChange] = []
      for place in places { found += try self.changes(at: path.path, in: place) }
      if !found.isEmpty { changes.append(RevisionChanges(revision: revision, changes: found)) }
    }
    return ChangesPage(
      changes: changes, next: report.child("next")?.number,
      since: report.child("since")?.number ?? 0)
  }

  /// What a place of a report, which is above the path, at it or below it, changed there.
  private func changes(at path: Path, in row: Value) throws -> [PlaceChange] {
    guard case .text(let pointer)? = row.child("path"), let place = Path(pointer: pointer) else {
      throw Failure(.goodbye, "the daemon's change has no path.")
    }
    let (old, new) = (
      try named(row.child("from"), at: place), try named(row.child("to"), at: place)
    )
    if path.leads(to: place) {
      return try PlaceChange.all(from: old, to: new, at: place, along: [])
    }
    guard place.leads(to: path) else { return [] }
    let rest = Path(Array(path.keys.dropFirst(place.keys.count)))
    return try PlaceChange.all(
      from: old?.value(at: rest), to: new?.value(at: rest), at: path, along: [])
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
