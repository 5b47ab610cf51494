import Documents
import EventLoop
import LockstepClient
import Values
import Wire

/// Follows the values that a page shows, each with a subscription of its own.
actor VisibleValues {
  private let outbox: InspectorOutbox
  private var client: Client?
  private var followers: [String: Task<Void, Never>] = [:]

  /// The most paths that a page may show.
  static let mostPaths = 500
  /// The most bytes of the JSON of a value that is told without being asked for.
  private static let mostBytes = 16 << 10

  init(_ outbox: InspectorOutbox) { self.outbox = outbox }

  /// Follow these paths, and no others.
  func see(_ paths: Set<String>) {
    for (path, follower) in followers where !paths.contains(path) {
      follower.cancel()
      followers[path] = nil
    }
    outbox.keepValues(of: paths)
    for path in paths where followers[path] == nil { followers[path] = follow(path) }
  }

  /// Follow the same paths on another connection; on none until there is one.
  func use(_ client: Client?) {
    self.client = client
    let paths = Array(followers.keys)
    for follower in followers.values { follower.cancel() }
    for path in paths { followers[path] = follow(path) }
  }

  private func follow(_ pointer: String) -> Task<Void, Never> {
    Task { [client, outbox] in
      guard let client else { return }
      do {
        guard let place = Path(pointer: pointer) else {
          throw Failure(.usage, code: "malformed", "'\(pointer.shortened)' is no path.")
        }
        let path = try client.resolve(PathArgument(place))
        let mirror = try await client.mirror(of: path.scope)
        var last: Value??
        for await _ in mirror.changes {
          let (state, position) = mirror.snapshot
          let value = state?.value(at: path.rest)
          guard let position, !(last.map { $0.isSame(as: value) } ?? false) else { continue }
          if Task.isCancelled { return }
          last = .some(value)
          outbox.tell(Self.row(pointer, position.revision, value), at: pointer)
        }
      } catch {
        guard !Task.isCancelled, let failure = Failure(error) else { return }
        outbox.tell(["path": .text(pointer), "error": .text(failure.message)], at: pointer)
      }
    }
  }

  private static func row(_ pointer: String, _ revision: UInt64, _ value: Value?) -> Value {
    var members: TrieMap<String, Value> = ["path": .text(pointer), "revision": Value(revision)]
    if let value {
      if JSON.text(value).utf8.count > mostBytes {
        members.updateValue("it is too large to be shown here.", forKey: "error")
      } else {
        members.updateValue(value, forKey: "value")
      }
    }
    return .object(members)
  }
}
