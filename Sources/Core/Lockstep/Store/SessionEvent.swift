public import CBOR
public import Values

/// An event of a client's session, which outlives its connections and is named by
/// `ClientOrigin.session`. For features that keep data for as long as a client is present.
///
///     lost -> returned -> lost -> … -> ended
///
/// A session whose client says goodbye ends without being lost first. A session that ended because
/// its process exited can return once more, in a process that was given its token; the data kept
/// for it is gone.
public enum SessionEvent: Hashable, Sendable {
  /// The session has ended. Data kept for it can be removed.
  case ended(session: UInt64, reason: EndReason)
  /// The session has no connection. Its client may reconnect within the daemon's grace period.
  case lost(session: UInt64)
  /// The client reconnected and resumed the session.
  case returned(session: UInt64)

  /// Why a session has ended.
  public enum EndReason: String, SynchronizableScalar {
    /// Its connection is closed, and the process that made it has exited.
    case exited
    /// Its client did not reconnect in time, or the session was evicted because too many had no
    /// connection.
    case graceOver
    /// The client said goodbye.
    case goodbye
  }

  /// The session that the event concerns.
  public var session: UInt64 {
    switch self {
    case .ended(let session, _), .lost(let session), .returned(let session): session
    }
  }
}

/// An action can carry it: `case session(SessionEvent)`. Check its origin, because a client can
/// send such an action too: only one whose origin is the owner comes from the daemon.
extension SessionEvent: SynchronizableScalar {
  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .ended(let session, let reason):
      encoder.array(3)
      encoder.encode(0)
      encoder.encode(session)
      reason.encode(into: &encoder)
    case .lost(let session):
      encoder.array(2)
      encoder.encode(1)
      encoder.encode(session)
    case .returned(let session):
      encoder.array(2)
      encoder.encode(2)
      encoder.encode(session)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var item = try CaseDecoder(&decoder)
    let type = "SessionNews"
    guard item.number <= 2 else { throw item.unknown }
    let session: UInt64 = try item.field(type, "session", from: &decoder, seed: seed)
    switch item.number {
    case 0:
      self = .ended(
        session: session, reason: try item.field(type, "reason", from: &decoder, seed: seed))
    case 1: self = .lost(session: session)
    default: self = .returned(session: session)
    }
    try item.finish(&decoder)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    // Journals and clients match the type by this name: it must not change when the type is
    // renamed.
    schema.kind(of: Self.self, named: "SessionNews") { schema in
      let session = Schema.Field(1, "session", .unsigned)
      let reason = Schema.Field(2, "reason", EndReason.schemaKind(in: &schema))
      return .enumeration([
        .init(0, "ended", [session, reason]), .init(1, "lost", [session]),
        .init(2, "returned", [session]),
      ])
    }
  }
}
