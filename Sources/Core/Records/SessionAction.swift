public import Wire

/// Identifies a client's action by its session, and by its number there.
public struct SessionAction: Hashable, Sendable {
  public var session: SessionToken
  public var number: UInt64

  public init(session: SessionToken, number: UInt64) {
    self.session = session
    self.number = number
  }
}
