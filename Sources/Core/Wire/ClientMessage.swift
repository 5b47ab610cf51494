public import CBOR
public import Values

/// A message of a client. An `action` is read with `MessageHead` and `ActionHead`, because its
/// payload belongs to the feature.
public enum ClientMessage: Equatable, Sendable {
  case hello(Hello)
  /// Subscribe to a part of the state: from `position` on, if the daemon can; else from a snapshot.
  case subscribe(subscription: UInt64, Path, Position?)
  case unsubscribe(subscription: UInt64)
  /// The payload is the encoded action.
  case action(number: UInt64, Mark, payload: [UInt8])
  case ping(UInt64)
  /// Ask for the digest of a subscription at the position it has on this stream.
  case digestRequest(subscription: UInt64)
  /// Query the daemon about itself: "status", "clients", "limits", or about the arguments.
  case query(number: UInt64, String, arguments: [String] = [])
  case goodbye(GoodbyeCode, String)

  public struct Hello: Hashable, Sendable {
    /// The protocol versions that the client speaks.
    public var versions: ClosedRange<UInt64>
    /// The client's name for itself: for display only.
    public var label: String
    /// The fingerprint of the schema that the client knows; the daemon then need not send it.
    public var fingerprint: UInt64?
    /// The session to resume.
    public var token: SessionToken?
    /// The position that the client's mirrors had reached.
    public var position: Position?
    /// Whether the daemon should say which actions it has decided, before their changes
    /// (`ServerMessage.decided`).
    public var wantsDecisions: Bool

    public init(
      versions: ClosedRange<UInt64>, label: String, fingerprint: UInt64? = nil,
      token: SessionToken? = nil, position: Position? = nil, wantsDecisions: Bool = false
    ) {
      self.versions = versions
      self.label = label
      self.fingerprint = fingerprint
      self.token = token
      self.position = position
      self.wantsDecisions = wantsDecisions
    }
  }
}

// MARK: Encoding

extension ClientMessage {
  /// Append the message, without a frame.
  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .hello(let hello):
      // The last field was added later: without it the message has its first form.
      encoder.beginMessage(.hello, extra: hello.wantsDecisions ? 1 : 0)
      encoder.array(2)
      encoder.encode(hello.versions.lowerBound)
      encoder.encode(hello.versions.upperBound)
      encoder.encode(hello.label)
      encoder.encodeOptional(hello.fingerprint) { $0.encode($1) }
      encoder.encodeOptional(hello.token) { $1.encode(into: &$0) }
      encoder.encodeOptional(hello.position) { $1.encode(into: &$0) }
      if hello.wantsDecisions { encoder.encode(true) }
    case .subscribe(let subscription, let path, let position):
      encoder.beginMessage(.subscribe)
      encoder.encode(subscription)
      path.encode(into: &encoder)
      encoder.encodeOptional(position) { $1.encode(into: &$0) }
    case .unsubscribe(let subscription):
      encoder.beginMessage(.unsubscribe)
      encoder.encode(subscription)
    case .action(let number, let mark, let payload):
      encoder.beginMessage(.action)
      encoder.encode(number)
      encoder.encode(mark.rawValue)
      encoder.raw(payload)
    case .ping(let value):
      encoder.beginMessage(.ping)
      encoder.encode(value)
    case .digestRequest(let subscription):
      encoder.beginMessage(.digestRequest)
      encoder.encode(subscription)
    case .query(let number, let name, let arguments):
      // The arguments were added later: without any, the message has its first form.
      encoder.beginMessage(.query, extra: arguments.isEmpty ? 0 : 1)
      encoder.encode(number)
      encoder.encode(name)
      guard !arguments.isEmpty else { return }
      encoder.array(arguments.count)
      for argument in arguments { encoder.encode(argument) }
    case .goodbye(let code, let message):
      encoder.beginMessage(.clientGoodbye)
      encoder.encode(code.rawValue)
      encoder.encode(message)
    }
  }
}

// MARK: Decoding

extension ClientMessage {
  /// Decode a whole message.
  public init(_ item: UnsafeRawBufferPointer) throws(WireError) {
    var decoder = CBORDecoder(item)
    let head = try MessageHead(from: &decoder)
    do throws(CBORError) {
      guard let message = try ClientMessage(head, from: &decoder) else {
        throw CBORError(.notAllowed("a \(head.type) message comes from daemons only"), at: 0)
      }
      self = message
      let mayHaveOneMore = head.type == .query || head.type == .hello
      try head.finish(&decoder, read: mayHaveOneMore ? min(head.extra, 1) : 0)
      guard decoder.isAtEnd else {
        throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
      }
    } catch {
      throw .malformed(error)
    }
  }

  /// Decode the fields after a head, those of a `hello` or a `query` with the field that was added
  /// later if it has it. Nil if the type is one of the daemon's messages.
  public init?(_ head: MessageHead, from decoder: inout CBORDecoder) throws(CBORError) {
    switch head.type {
    case .hello:
      var hello = try Hello(from: &decoder)
      if head.extra > 0, !decoder.nullIfNext() { hello.wantsDecisions = try decoder.bool() }
      self = .hello(hello)
    case .subscribe:
      self = .subscribe(
        subscription: try decoder.unsigned(), try Path(from: &decoder),
        try decoder.optional { decoder throws(CBORError) in try Position(from: &decoder) })
    case .unsubscribe: self = .unsubscribe(subscription: try decoder.unsigned())
    case .action:
      let action = try ActionHead(from: &decoder)
      self = .action(
        number: action.number, action.mark, payload: [UInt8](try decoder.rawItem()))
    case .ping: self = .ping(try decoder.unsigned())
    case .digestRequest: self = .digestRequest(subscription: try decoder.unsigned())
    case .query:
      self = .query(
        number: try decoder.unsigned(), try decoder.text(),
        arguments: head.extra > 0 && !decoder.nullIfNext()
          ? try Self.texts(from: &decoder) : [])
    case .clientGoodbye:
      self = .goodbye(GoodbyeCode(rawValue: try decoder.unsigned()), try decoder.text())
    case .welcome, .subscribed, .snapshot, .patch, .acknowledgement, .pong, .bookmark, .digest,
      .restarting, .restarted, .decided, .schema, .report, .goodbye:
      return nil
    }
  }
}

extension ClientMessage {
  private static func texts(from decoder: inout CBORDecoder) throws(CBORError) -> [String] {
    var texts: [String] = []
    for _ in 0..<(try decoder.array()) { texts.append(try decoder.text()) }
    decoder.close()
    return texts
  }
}

extension ClientMessage.Hello {
  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("versions are [lowest, highest]"), at: start)
    }
    let lowest = try decoder.unsigned()
    let highest = try decoder.unsigned()
    decoder.close()
    guard lowest <= highest else {
      throw CBORError(.notAllowed("versions \(lowest) to \(highest) are none"), at: start)
    }
    versions = lowest...highest
    label = try decoder.text()
    fingerprint = try decoder.optional { decoder throws(CBORError) in try decoder.unsigned() }
    token = try decoder.optional { decoder throws(CBORError) in try SessionToken(from: &decoder) }
    position = try decoder.optional { decoder throws(CBORError) in try Position(from: &decoder) }
    wantsDecisions = false
  }
}

/// The fields of an `action` message before its payload.
public struct ActionHead: Sendable {
  /// Rises by one with every action of the session.
  public let number: UInt64
  public let mark: Mark

  @inlinable
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    number = try decoder.unsigned()
    let start = decoder.offset
    guard let mark = Mark(rawValue: try decoder.unsigned()) else {
      throw CBORError(.notAllowed("a mark is 0 (applied) or 1 (durable)"), at: start)
    }
    self.mark = mark
  }
}

// MARK: Optional fields

extension CBORDecoder {
  /// Read `null` or a value.
  @inlinable
  mutating func optional<T>(
    _ decode: (inout CBORDecoder) throws(CBORError) -> T
  ) throws(CBORError) -> T? {
    nullIfNext() ? nil : try decode(&self)
  }
}
