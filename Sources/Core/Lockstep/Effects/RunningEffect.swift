/// An effect that a store runs, for people.
public struct RunningEffect: Hashable, Sendable {
  public let id: EffectID
  public let name: String
  /// The names under which it can be cancelled, innermost first.
  public let keys: [EffectKey]
  /// The action that it was returned for.
  public let action: String
  /// The sequence number of that action.
  public let sequence: UInt64
  /// The client that began it all.
  public let client: ClientOrigin?
  /// Whether it ends with that client.
  public let isOwned: Bool
  public let started: Timestamp
  /// How many actions it has sent.
  public let sent: UInt64
  /// Where in the source it was written.
  public let place: String
}
