public import Wire

/// A client's action, as its session numbers it.
public struct SessionAction: Hashable, Sendable {
  public var session: SessionToken
  public var number: UInt64

  public init(session: SessionToken, number: UInt64) {
    self.session = session
    self.number = number
  }
}
