import Access
import CBOR
public import Lockstep
import Records
public import Values
public import Wire

// Theory of operation
//
// A server is a value with one entry point: from equal initial values, equal events give equal
// commands. So its setup and its events are a complete recording of what it did. The shell writes
// them as they happen, and another process replays them (`Replay`):
//
//     "LSRE"
//     head          the setup
//     event         the time and the event; written before it is handled, so that a recording of a
//                   process that ended abruptly has the event that ended it
//     commands      a hash of the commands, their number, and the revision
//     event, commands, …
//     end           the revision and the digest of the state
//
// Each piece but the first is a length (4 bytes, little-endian) and a CBOR array whose first item
// is its kind. If a recording breaks off, its process did; the whole pieces before that are valid.

/// The pieces of a recording, in the order in which they are appended to a file.
public enum Recording {
  static let magic: [UInt8] = Array("LSRE".utf8)
  /// Rises with every change of the format.
  static let format: UInt64 = 3

  enum Piece: UInt64 {
    case head, event, commands, end
  }

  /// The first piece of a recording. O(the state).
  public static func head<State>(_ setup: ServerSetup<State>, schema: Schema) -> [UInt8] {
    magic + piece(.head, 1) { setup.encode(into: &$0, schema) }
  }

  /// The piece of an event that is about to be handled. Nil for an action that never travels, such
  /// as a reactor's mutation, since it cannot be encoded.
  public static func event<Action: SynchronizableAction>(
    _ event: Event<Action>, at now: Instant
  ) -> [UInt8]? {
    guard event.travels else { return nil }
    return piece(.event, 2) { encoder in
      encoder.encode(now.nanoseconds)
      event.encode(into: &encoder)
    }
  }

  /// The piece of the commands that the event led to.
  public static func commands(_ commands: some Collection<Command>, revision: UInt64) -> [UInt8] {
    piece(.commands, 3) { encoder in
      encoder.encode(hash(of: commands))
      encoder.encode(commands.count)
      encoder.encode(revision)
    }
  }

  /// The last piece of a recording.
  public static func end(revision: UInt64, digest: Digest) -> [UInt8] {
    piece(.end, 2) { encoder in
      encoder.encode(revision)
      encoder.encode(digest.rawValue)
    }
  }

  static func hash(of commands: some Collection<Command>) -> UInt64 {
    if commands.isEmpty { return 0 }
    var encoder = CBOREncoder()
    for command in commands { command.encode(into: &encoder) }
    return encoder.bytes.withUnsafeBytes { Hashing.sip($0, seed: .unseeded) }
  }

  private static func piece(
    _ piece: Piece, _ values: Int, _ encode: (inout CBOREncoder) -> Void
  ) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.bytes = [0, 0, 0, 0]
    encoder.array(1 + values)
    encoder.encode(piece.rawValue)
    encode(&encoder)
    let length = UInt32(clamping: encoder.bytes.count - 4)
    for index in 0..<4 { encoder.bytes[index] = UInt8(truncatingIfNeeded: length >> (8 * index)) }
    return encoder.bytes
  }
}

extension Event where Action: SynchronizableAction {
  /// Whether the event can be recorded: an action can if what it encodes to can be decoded.
  fileprivate var travels: Bool {
    switch self {
    case .acted(let action), .effectSent(_, let action):
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      let read = try? CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
        try Action(from: &decoder, seed: .unseeded)
      }
      return read != nil
    default: return true
    }
  }
}

/// The reason that a recording cannot be replayed.
public struct RecordingError: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

// MARK: The head

extension ServerSetup {
  fileprivate func encode(into encoder: inout CBOREncoder, _ schema: Schema) {
    encoder.array(16)
    encoder.encode(Recording.format)
    encoder.encode(
      bytes: HandOver(kept: kept, connections: [], connectionCount: 0).encoded(schema: schema))
    encoder.array(3 * kept.poisoned.count)
    for action in kept.poisoned.sorted(by: { $0.isBefore($1) }) {
      encoder.encode(action.session.high)
      encoder.encode(action.session.low)
      encoder.encode(action.number)
    }
    encoder.array(2 * kept.unjournaledSessions.count)
    for token in kept.unjournaledSessions.sorted(by: { $0.isBefore($1) }) {
      encoder.encode(token.high)
      encoder.encode(token.low)
    }
    encoder.encode(kept.isHandedOver)
    encoder.encodeOptional(kept.durable) { $0.encode($1) }
    encoder.encode(kept.journaledBytes)
    encoder.encode(kept.stateBytes)
    let table = limits.table
    encoder.array(2 * table.count)
    for (name, value) in table {
      encoder.encode(name)
      encoder.encode(value)
    }
    encoder.array(2 * about.count)
    for (name, value) in about {
      encoder.encode(name)
      value.encode(into: &encoder)
    }
    encoder.encode(hasShellMetrics)
    encoder.encode(durability.rawValue)
    encoder.encodeOptional(policy) { $1.encode(into: &$0) }
    encoder.encode(isPolicyNew)
    encoder.encodeOptional(owner) { $0.encode($1) }
    encoder.encode(time.nanoseconds)
  }

  init(from decoder: inout CBORDecoder, schema: Schema) throws(CBORError) {
    try decoder.expectArray(16, "a setup")
    let start = decoder.offset
    let format = try decoder.unsigned()
    guard format == Recording.format else {
      throw CBORError(
        .notAllowed("a recording of format \(format), not \(Recording.format)"), at: start)
    }
    var kept = try Self.kept(&decoder, schema)
    kept.poisoned = Set(
      try decoder.groups(of: 3) { decoder throws(CBORError) in
        SessionAction(
          session: SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned()),
          number: try decoder.unsigned())
      })
    kept.unjournaledSessions = Set(
      try decoder.pairs { decoder throws(CBORError) in
        SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned())
      })
    kept.isHandedOver = try decoder.bool()
    kept.durable = decoder.nullIfNext() ? nil : try decoder.unsigned()
    kept.journaledBytes = try decoder.byteCount()
    kept.stateBytes = try decoder.byteCount()
    var limits = Limits()
    for (name, value) in try decoder.pairs({ decoder throws(CBORError) in
      (try decoder.text(), try decoder.unsigned())
    }) { limits.set(name, to: value) }
    let about = try decoder.pairs { decoder throws(CBORError) in
      (try decoder.text(), try Value(from: &decoder, seed: .unseeded))
    }
    let hasShellMetrics = try decoder.bool()
    let durability = Durability(rawValue: try decoder.text())
    let policy = decoder.nullIfNext() ? nil : try Policy(from: &decoder)
    let isPolicyNew = try decoder.bool()
    let owner = decoder.nullIfNext() ? nil : try decoder.unsigned()
    self.init(kept, at: Instant(nanoseconds: try decoder.unsigned()))
    (self.limits, self.about, self.hasShellMetrics) = (limits, about, hasShellMetrics)
    (self.policy, self.isPolicyNew, self.owner) = (policy, isPolicyNew, owner)
    if let durability { self.durability = durability }
    decoder.close()
  }

  private static func kept(
    _ decoder: inout CBORDecoder, _ schema: Schema
  ) throws(CBORError) -> RestoredState<State> {
    let start = decoder.offset
    let bytes = try decoder.byteString()
    do throws(HandOverFailure) {
      let image = try HandOver<State>(bytes, schema: schema)
      if image.isTranslated {
        throw HandOverFailure("the feature's types have changed since it was recorded")
      }
      return image.kept
    } catch {
      throw CBORError(.notAllowed("\(error)"), at: start)
    }
  }
}

extension SessionToken {
  fileprivate func isBefore(_ other: SessionToken) -> Bool {
    (high, low) < (other.high, other.low)
  }
}

extension SessionAction {
  fileprivate func isBefore(_ other: SessionAction) -> Bool {
    session == other.session ? number < other.number : session.isBefore(other.session)
  }
}
