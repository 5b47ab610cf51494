/// A description of a running effect, for display.
public struct RunningEffect: Hashable, Sendable {
  public let id: EffectID
  public let name: String
  /// The names under which it can be cancelled, innermost first.
  public let keys: [EffectKey]
  /// The name of the action that it was returned for.
  public let action: String
  /// The sequence number of that action.
  public let sequence: UInt64
  /// The client that started the cascade; nil when no client did.
  public let client: ClientOrigin?
  /// Whether it is cancelled when that client disconnects.
  public let isOwned: Bool
  public let started: Timestamp
  /// How many actions it has sent.
  public let sent: UInt64
  /// The file and line in the source where the effect was made.
  public let place: String
}
