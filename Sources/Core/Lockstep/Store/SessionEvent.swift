public import CBOR
public import Values

/// What became of a client's session: what outlives its connections, as `ClientOrigin.session`
/// names it. For features that keep something for as long as a client is there.
///
///     lost -> returned -> lost -> … -> ended
///
/// A session that takes leave ends without being lost first. One that ended because its process
/// did can return once more, in a process that was given its token; what was kept for it is gone.
public enum SessionEvent: Hashable, Sendable {
  /// The session is over. What was kept for it can go.
  case ended(session: UInt64, reason: EndReason)
  /// The session has no connection. Its client may come back within the daemon's grace.
  case lost(session: UInt64)
  /// The client came back, and goes on with the session.
  case returned(session: UInt64)

  /// Why a session is over.
  public enum EndReason: String, SynchronizableScalar {
    /// Its connection is gone, and so is the process that made it.
    case exited
    /// Nobody came back for it in time, or there were too many that nobody came back for.
    case graceOver
    /// The client took leave.
    case goodbye
  }

  /// The session that it is about.
  public var session: UInt64 {
    switch self {
    case .ended(let session, _), .lost(let session), .returned(let session): session
    }
  }
}

/// An action can carry it: `case session(SessionEvent)`. That it says so does not make it true: a
/// client can send such an action too. Only one whose origin is the owner is the daemon's.
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
    // The name by which journals and clients match it: not to be changed with the type's.
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
