public import CBOR

/// The versions of `Protocols/wire.md`.
public enum ProtocolVersion {
  /// The versions that this build speaks, daemon and client.
  public static let range: ClosedRange<UInt64> = 1...3
  /// The version from which on a daemon says which actions it has decided (`decided`).
  package static let withDecisions: UInt64 = 3
}

/// The first item of every message. Clients send the numbers below 11, daemons those from 11.
public enum MessageType: UInt64, Sendable, CaseIterable {
  case hello = 1
  case subscribe = 2
  case unsubscribe = 3
  case action = 4
  case ping = 5
  case digestRequest = 6
  case query = 7
  case clientGoodbye = 8

  case welcome = 11
  case subscribed = 12
  case snapshot = 13
  case patch = 14
  case acknowledgement = 15
  case pong = 16
  case bookmark = 17
  case digest = 18
  case schema = 19
  case report = 20
  case goodbye = 21
  case restarting = 22
  case restarted = 23
  case decided = 24

  public var isFromClient: Bool { rawValue < 11 }

  /// The number of fields in the first version of the message, without its type. Further fields are
  /// skipped, so that later versions may add some.
  @inlinable
  package var fieldCount: Int {
    switch self {
    case .hello: 5
    case .subscribe: 3
    case .unsubscribe: 1
    case .action: 3
    case .ping: 1
    case .digestRequest: 1
    case .query: 2
    case .clientGoodbye: 2
    case .welcome: 11
    case .subscribed: 5
    case .snapshot: 5
    case .patch: 4
    case .acknowledgement: 6
    case .pong: 2
    case .bookmark: 2
    case .digest: 3
    case .schema: 1
    case .report: 2
    case .goodbye: 6
    case .restarting: 1
    case .restarted: 1
    case .decided: 2
    }
  }
}

extension CBOREncoder {
  /// Append the array's head and the type of a message. Its fields follow: those of its first
  /// version, and `extra` more.
  @inlinable
  package mutating func beginMessage(_ type: MessageType, extra: Int = 0) {
    array(1 + type.fieldCount + extra)
    encode(type.rawValue)
  }
}

/// The head of a message that is being read.
public struct MessageHead: Sendable {
  public let type: MessageType
  /// The number of fields after those of the first version.
  @usableFromInline let extra: Int

  /// The number of fields after those of the first version, which may be a list of any length.
  public var extraFields: Int { extra }

  /// Read the array's head and the type. Throws when the item is not a message.
  @inlinable
  public init(from decoder: inout CBORDecoder) throws(WireError) {
    let count: Int
    let number: UInt64
    do throws(CBORError) {
      count = try decoder.array()
      number = count == 0 ? 0 : try decoder.unsigned()
    } catch {
      throw .malformed(error)
    }
    try self.init(number: number, count: count)
  }

  @usableFromInline
  init(number: UInt64, count: Int) throws(WireError) {
    guard let type = MessageType(rawValue: number) else {
      throw WireError(.unknownMessage, "there is no message type \(number)")
    }
    let extra = count - 1 - type.fieldCount
    guard extra >= 0 else {
      throw WireError(
        .malformed, "a \(type) message has \(type.fieldCount) fields, this one \(count - 1)")
    }
    self.type = type
    self.extra = extra
  }

  /// Skip the fields that this version does not know, and close the message. `read` of the fields
  /// after those of the first version have been read.
  @inlinable
  public func finish(_ decoder: inout CBORDecoder, read: Int = 0) throws(CBORError) {
    for _ in read..<extra { try decoder.skip() }
    decoder.close()
  }
}

/// How safe an action is when it is acknowledged.
public enum Mark: UInt64, Sendable {
  /// The action is in the state.
  case applied = 0
  /// The action is in the state and survives a crash.
  case durable = 1
}
