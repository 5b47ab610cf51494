import EventLoop
import LockstepClient
import Values
import Wire

/// Finds what revisions changed at some places, in the past that the daemon remembers.
struct ChangeFinder {
  private let client: Client
  private let paths: [PathArgument]

  /// `paths` are resolved. Those below another one say nothing more.
  init(_ client: Client, at paths: [PathArgument]) {
    self.client = client
    var kept: [PathArgument] = []
    for path in paths.sorted(by: { $0.path.keys.count < $1.path.keys.count })
    where !kept.contains(where: { $0.path.leads(to: path.path) }) {
      kept.append(path)
    }
    self.paths = kept
  }

  struct Found {
    /// The revisions that changed something there.
    var changes: [UInt64: [PlaceChange]] = [:]
    /// What this revision and those before it changed is not remembered.
    var since: UInt64 = 0
  }

  /// What the revisions of a range changed. Throws if the daemon has no past.
  func changes(of revisions: ClosedRange<UInt64>) async throws -> Found {
    var found = Found()
    for path in paths {
      var before: UInt64? = revisions.upperBound + 1
      while let end = before, end > revisions.lowerBound {
        let page = try await client.changes(
          at: path, before: end,
          count: Int(clamping: min(UInt64(Client.pageChanges), end - revisions.lowerBound)))
        for change in page.changes {
          found.changes[change.revision, default: []] += change.changes
        }
        found.since = max(found.since, page.since)
        before = page.next
      }
    }
    return found
  }
}
