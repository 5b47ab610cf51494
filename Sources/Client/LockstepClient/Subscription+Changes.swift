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

    /// The revision as after a snapshot.
    fileprivate var withoutPatch: Self { Self(revision: revision, state: state, patch: []) }
  }

  /// Every revision received from now on, if the subscription was made with `everyRevision`. When more
  /// than 8 MiB wait for the reader, the newest revision takes their place, without its patch, as after a
  /// snapshot. Ends with the connection.
  public var revisions: MergingStream<RevisionChange> {
    let (stream, source) = MergingStream<RevisionChange>.make(bytes: Self.mostWaitingBytes) {
      [$0[$0.count - 1].withoutPatch]
    }
    let stop = observe({ source.append($0, bytes: $0.patch.count) }, onEnd: source.finish)
    source.onTermination(stop)
    return stream
  }

  /// Every revision received from now on by any of some mirrors of one connection, with the mirror's
  /// place among them, in the order in which they come: those of earlier turns of the daemon first.
  /// Otherwise like `revisions`.
  public static func revisions(
    of mirrors: [Subscription]
  ) -> MergingStream<(mirror: Int, change: RevisionChange)> {
    let (stream, source) = MergingStream<(mirror: Int, change: RevisionChange)>.make(
      bytes: mostWaitingBytes, merge: merged)
    let stops = mirrors.enumerated().map { index, mirror in
      mirror.observe(
        { source.append((index, $0), bytes: $0.patch.count) }, onEnd: source.finish)
    }
    source.onTermination { for stop in stops { stop() } }
    return stream
  }

  /// The newest change of each mirror, in their order, without its patch.
  package static func merged(
    _ changes: [(mirror: Int, change: RevisionChange)]
  ) -> [(mirror: Int, change: RevisionChange)] {
    var seen: Set<Int> = []
    return changes.reversed().filter { seen.insert($0.mirror).inserted }.reversed()
      .map { ($0.mirror, $0.change.withoutPatch) }
  }

  package static var mostWaitingBytes: Int { 8 << 20 }

  private func observe(
    _ onRevision: @escaping @Sendable (RevisionChange) -> Void,
    onEnd: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    link.observe(
      Link.Observer(
        subscription: number,
        onRevision: { value, revision, patch in
          onRevision(
            RevisionChange(revision: revision, state: value.value(as: State.self), patch: patch))
        },
        onEnd: onEnd))
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
