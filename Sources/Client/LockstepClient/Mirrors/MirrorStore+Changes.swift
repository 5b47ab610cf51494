import Values

extension MirrorStore {
  /// The newest state, then the state after every revision received, without omissions. A reader
  /// that is slower than the daemon makes the stream grow. Ends with the connection.
  public var changes: AsyncStream<State> {
    subscription.wantEveryRevision()
    return subscription.revisions { state, _, _ in state ?? Self.absent }
  }
}
