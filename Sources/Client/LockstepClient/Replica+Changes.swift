import ClientCore
public import Values
import Wire

extension Replica {
  /// The newest value, then every change of it that its reader is in time for: a reader that is
  /// not gets the last. Ends with the connection.
  public var changes: AsyncStream<Mirrored?> {
    changes(of: { $0 })
  }

  /// The newest value of a part, then its changes; equal ones are left out. `part` is called where
  /// changes come in, one call after the other, and may use the mirror.
  public func changes<Part: Synchronizable>(
    of part: @escaping @Sendable (Mirrored?) -> Part?
  ) -> AsyncStream<Part?> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let last = LastValue<Part>()
      observe(
        continuation.onTermination(_:),
        onChange: { mirror in
          guard mirror.position != nil else { return }
          let part = part(mirror.value?.value(as: Mirrored.self))
          if last.isNew(part) { continuation.yield(part) }
        },
        onEnd: { continuation.finish() })
    }
  }

  /// A revision as it came: the value that it made, and the patch that made it (empty for a
  /// snapshot).
  public struct RevisionChange: Sendable {
    public let revision: UInt64
    public let state: Mirrored?
    public let patch: [UInt8]
  }

  /// Every revision that comes from now on, none left out; ask for them with
  /// `Options.everyRevision`. A reader that is slower than the daemon makes the stream grow.
  public var revisions: AsyncStream<RevisionChange> {
    AsyncStream { continuation in
      observe(
        continuation.onTermination(_:),
        onRevision: { value, revision, patch in
          let state = value?.value(as: Mirrored.self)
          continuation.yield(RevisionChange(revision: revision, state: state, patch: patch))
        },
        onEnd: { continuation.finish() })
    }
  }

  /// Register an observer, tell it what is there, and remove it with its stream.
  func observe(
    _ onTermination: (@escaping @Sendable () -> Void) -> Void,
    onChange: (@Sendable (ClientSubscription<AnyMirrored>) -> Void)? = nil,
    onRevision: (@Sendable (AnyMirrored?, UInt64, [UInt8]) -> Void)? = nil,
    onConnection: (@Sendable (Link.Session.ConnectionState) -> Void)? = nil,
    onEnd: @escaping @Sendable () -> Void
  ) {
    let observer = Link.Observer(
      subscription: subscription, onChange: onChange, onRevision: onRevision,
      onConnection: onConnection, onEnd: onEnd)
    let number = link.perform { state -> UInt64 in
      state.nextNumber += 1
      if case .closed = state.connection {
        state.deliver(onEnd)
        return 0
      }
      state.observers[state.nextNumber] = observer
      if let mirror = state.session.mirror(subscription), let position = mirror.position {
        state.deliver {
          onChange?(mirror)
          onRevision?(mirror.value, position.revision, [])
        }
      }
      return state.nextNumber
    }
    onTermination { [link] in
      link.perform { state in state.observers[number] = nil }
    }
  }
}

extension AsyncStream.Continuation {
  func onTermination(_ body: @escaping @Sendable () -> Void) {
    onTermination = { reason in
      // A finished stream has no observer any more.
      if case .cancelled = reason { body() }
    }
  }
}

extension Replica where Mirrored == Value {
  /// The newest value at a path of the document, then its changes; equal ones are left out.
  public func changes(of path: Path) -> AsyncStream<Value?> {
    changes(of: { $0?.value(at: path) })
  }
}

/// The value that an observer was last told.
///
/// Unchecked: touched only by the link's deliveries, of which one runs at a time.
private final class LastValue<Part: Synchronizable>: @unchecked Sendable {
  private var value: Part??

  /// Note a value. Returns whether it differs from the one before.
  func isNew(_ new: Part?) -> Bool {
    if let value, value.isSame(as: new) { return false }
    value = .some(new)
    return true
  }
}
