public import Lockstep

/// The remote that the feed follows.
public struct WebSocket: Sendable {
  /// Messages as they arrive, until the remote closes.
  public typealias Messages = any AsyncSequence<String, any Error> & Sendable

  /// Connect to the remote. Throws when it cannot be reached.
  public var connect: @Sendable () async throws -> Messages

  public init(connect: @escaping @Sendable () async throws -> Messages) {
    self.connect = connect
  }
}

extension DependencyValues {
  public var webSocket: WebSocket {
    get { self[WebSocketKey.self] }
    set { self[WebSocketKey.self] = newValue }
  }
}

private enum WebSocketKey: DependencyKey {
  static var liveValue: WebSocket { WebSocket { throw NoWebSocket() } }
}

private struct NoWebSocket: Error, CustomStringConvertible {
  var description: String { "nobody has said where the remote is" }
}
