import ClientCore
public import Values
import Wire

extension Subscription {
  /// The newest value, then its changes. A slow reader skips intermediate values and gets the
  /// latest. Ends with the connection.
  public var changes: AsyncStream<State?> { changes(of: { $0 }) }

  /// The newest value of a part, then its changes; equal values are omitted. `part` is called where
  /// changes are delivered, one call after the other, and may use the mirror and its connection.
  public func changes<Part: Synchronizable>(
    of part: @escaping @Sendable (State?) -> Part?
  ) -> AsyncStream<Part?> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let last = LastValue<Part>()
      let stop = link.observe(
        Link.Observer(
          subscription: number,
          onChange: { mirror in
            guard mirror.position != nil else { return }
            let part = part(mirror.value.value(as: State.self))
            if last.isNew(part) { continuation.yield(part) }
          },
          onEnd: { continuation.finish() }))
      continuation.onTermination(stop)
    }
  }

  /// A revision as received: its value, and the patch that led to it (empty for a snapshot).
  public struct RevisionChange: Sendable {
    public let revision: UInt64
    public let state: State?
    public let patch: [UInt8]
  }

  /// Every revision received from now on, without omissions, if the subscription was made with
  /// `everyRevision`. A reader that is slower than the daemon makes the stream grow.
  public var revisions: AsyncStream<RevisionChange> {
    revisions { RevisionChange(revision: $1, state: $0, patch: $2) }
  }

  /// Every revision received from now on by any of some mirrors of one connection, with the mirror's
  /// place among them, in the order in which they come: those of earlier turns of the daemon first.
  /// Otherwise like `revisions`.
  public static func revisions(
    of mirrors: [Subscription]
  ) -> AsyncStream<(mirror: Int, change: RevisionChange)> {
    AsyncStream { continuation in
      let stops = mirrors.enumerated().map { index, mirror in
        mirror.link.observe(
          Link.Observer(
            subscription: mirror.number,
            onRevision: { value, revision, patch in
              let state = value.value(as: State.self)
              let change = RevisionChange(revision: revision, state: state, patch: patch)
              continuation.yield((index, change))
            },
            onEnd: { continuation.finish() }))
      }
      continuation.onTermination { for stop in stops { stop() } }
    }
  }

  /// The non-nil results of `element` for every revision received from now on.
  func revisions<Element>(
    _ element: @escaping @Sendable (State?, UInt64, [UInt8]) -> Element?
  ) -> AsyncStream<Element> {
    AsyncStream { continuation in
      let stop = link.observe(
        Link.Observer(
          subscription: number,
          onRevision: { value, revision, patch in
            if let element = element(value.value(as: State.self), revision, patch) {
              continuation.yield(element)
            }
          },
          onEnd: { continuation.finish() }))
      continuation.onTermination(stop)
    }
  }

  /// Turn on `everyRevision` for a mirror that was made without it.
  func wantEveryRevision() {
    link.perform { [number] state in state.session.wantEveryRevision(of: number) }
  }
}

extension Subscription<Value> {
  /// The newest value at a path of the document, then its changes; equal values are omitted.
  public func changes(of path: Path) -> AsyncStream<Value?> {
    changes(of: { $0?.value(at: path) })
  }
}

/// The value that an observer last received.
///
/// Unchecked: touched only by the link's deliveries, of which one runs at a time.
private final class LastValue<Part: Synchronizable>: @unchecked Sendable {
  private var value: Part??

  /// Record a value. Returns whether it differs from the one before.
  func isNew(_ new: Part?) -> Bool {
    if let value, value.isSame(as: new) { return false }
    value = .some(new)
    return true
  }
}
