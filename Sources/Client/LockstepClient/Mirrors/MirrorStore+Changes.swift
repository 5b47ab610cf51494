import ClientCore
import Values

extension MirrorStore {
  /// The newest state, then that behind every revision that comes, none left out. A reader that is
  /// slower than the daemon makes the stream grow. Ends with the connection.
  public var changes: AsyncStream<State> {
    replica.link.perform { [subscription = replica.subscription] state in
      state.session.wantEveryRevision(of: subscription)
    }
    return AsyncStream { continuation in
      replica.observe(
        continuation.onTermination(_:),
        onRevision: { value, _, _ in
          let state = value?.value(as: State.self)
          if let state = state ?? Self.absent { continuation.yield(state) }
        },
        onEnd: { continuation.finish() })
    }
  }
}
