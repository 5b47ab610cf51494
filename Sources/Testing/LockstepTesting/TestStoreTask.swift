/// The cascade of an action of a test: its effects, the actions that they send, and so on.
public struct TestStoreTask: Sendable {
  let end: @Sendable (Duration?, SourcePlace) async -> Void
  let stop: @Sendable () async -> Void
  let isDone: @Sendable () -> Bool

  /// Whether all of it has ended.
  public var isFinished: Bool { isDone() }

  /// Wait until all of it has ended; it is a failure if it does not end within the store's
  /// `timeout`.
  public func finish(
    timeout: Duration? = nil, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: UInt = #column
  ) async {
    await end(timeout, SourcePlace(fileID, filePath, line, column))
  }

  /// Cancel all of it.
  public func cancel() async { await stop() }
}
