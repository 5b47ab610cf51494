import Values

extension MirrorStore {
  /// The newest state, then that behind every revision that comes, none left out. A reader that is
  /// slower than the daemon makes the stream grow. Ends with the connection.
  public var changes: AsyncStream<State> {
    subscription.wantEveryRevision()
    return subscription.revisions { state, _, _ in state ?? Self.absent }
  }
}
