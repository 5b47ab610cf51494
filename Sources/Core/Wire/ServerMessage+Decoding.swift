import CBOR
public import Values

extension ServerMessage {
  /// Decode a whole message. Documents inside hash with `seed`.
  public init(_ item: UnsafeRawBufferPointer, seed: HashSeed) throws(WireError) {
    var decoder = CBORDecoder(item)
    let head = try MessageHead(from: &decoder)
    do throws(CBORError) {
      guard let message = try ServerMessage(head, seed: seed, from: &decoder) else {
        throw CBORError(.notAllowed("a \(head.type) message comes from clients only"), at: 0)
      }
      self = message
      // The pairs of a patch message are read already, as its own fields.
      switch head.type {
      case .patch: decoder.close()
      case .acknowledgement: try head.finish(&decoder, read: min(head.extra, 2))
      case .welcome, .report: try head.finish(&decoder, read: min(head.extra, 1))
      default: try head.finish(&decoder)
      }
      guard decoder.isAtEnd else {
        throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
      }
    } catch {
      throw .malformed(error)
    }
  }

  /// Decode the fields after a head. Nil when the type is one of the clients'.
  init?(_ head: MessageHead, seed: HashSeed, from decoder: inout CBORDecoder) throws(CBORError) {
    switch head.type {
    case .welcome:
      var welcome = try Welcome(from: &decoder)
      if head.extra > 0 { welcome.session = try decoder.optionalUnsigned() }
      self = .welcome(welcome)
    case .subscribed: self = .subscribed(try Subscribed(from: &decoder))
    case .snapshot:
      self = .snapshot(
        Snapshot(
          scope: try decoder.unsigned(), revision: try decoder.unsigned(),
          index: try decoder.unsigned(), isLast: try decoder.bool(),
          bytes: try decoder.byteString()))
    case .patch:
      let scope = try decoder.unsigned()
      let from = try decoder.unsigned()
      var patches: [SpanPatch] = []
      for _ in 0..<(1 + head.extraFields / 2) {
        let span = try decoder.unsigned()
        patches.append(SpanPatch(span: span, patch: [UInt8](try decoder.rawItem())))
      }
      guard head.extraFields % 2 == 0 else {
        throw CBORError(.notAllowed("a span without a patch"), at: decoder.offset)
      }
      self = .patch(scope: scope, from: from, patches)
    case .acknowledgement:
      var acknowledgement = try Acknowledgement(from: &decoder)
      if head.extra > 0, !decoder.nullIfNext() {
        acknowledgement.notDurable = try decoder.text()
      }
      if head.extra > 1 { acknowledgement.sequence = try decoder.optionalUnsigned() }
      self = .acknowledgement(acknowledgement)
    case .pong: self = .pong(try decoder.unsigned(), revision: try decoder.unsigned())
    case .bookmark:
      self = .bookmark(
        revision: try decoder.unsigned(), durable: try decoder.optionalUnsigned())
    case .digest:
      self = .digest(
        subscription: try decoder.unsigned(), revision: try decoder.unsigned(),
        try decoder.optionalUnsigned().map { Digest($0) })
    case .schema: self = .schema(try Schema(from: &decoder))
    case .report:
      let (number, value) = (try decoder.unsigned(), try Value(from: &decoder, seed: seed))
      let isWhole = head.extra == 0 || decoder.nullIfNext()
      self = .report(number: number, value, hasMore: isWhole ? false : try decoder.bool())
    case .goodbye: self = .goodbye(try Goodbye(from: &decoder))
    case .restarting: self = .restarting(retryAfter: try decoder.unsigned())
    case .restarted: self = .restarted(try Position(from: &decoder))
    case .decided:
      self = .decided(through: try decoder.unsigned(), revision: try decoder.unsigned())
    case .hello, .subscribe, .unsubscribe, .action, .ping, .digestRequest, .query, .clientGoodbye:
      return nil
    }
  }
}

extension ServerMessage.Welcome {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    version = try decoder.unsigned()
    position = try Position(from: &decoder)
    seed = HashSeed(try decoder.unsigned())
    token = try SessionToken(from: &decoder)
    isResumed = try decoder.bool()
    lastAction = try decoder.unsigned()
    window = try decoder.unsigned()
    limits = []
    for _ in 0..<(try decoder.map()) {
      limits.append(Limit(try decoder.text(), try decoder.unsigned()))
    }
    decoder.close()
    schema = try decoder.optional { decoder throws(CBORError) in try Schema(from: &decoder) }
    let start = decoder.offset
    guard try decoder.array() == 3 else {
      throw CBORError(.notAllowed("a peer is [pid, uid, gid]"), at: start)
    }
    peer = Peer(
      pid: try decoder.unsigned(), uid: try decoder.unsigned(), gid: try decoder.unsigned())
    decoder.close()
    durable = try decoder.optionalUnsigned()
  }
}

extension ServerMessage.Subscribed {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    subscription = try decoder.unsigned()
    scope = try decoder.unsigned()
    let start = decoder.offset
    guard let continuation = ServerMessage.Continuation(rawValue: try decoder.unsigned()) else {
      throw CBORError(.notAllowed("an unknown continuation"), at: start)
    }
    self.continuation = continuation
    // The reason is for people, so an unknown one from a later version changes nothing.
    reason = ServerMessage.Reason(rawValue: try decoder.unsigned()) ?? .none
    revision = try decoder.unsigned()
  }
}

extension Acknowledgement {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    first = try decoder.unsigned()
    last = try decoder.unsigned()
    guard first <= last else {
      throw CBORError(.notAllowed("actions \(first) to \(last) are none"), at: start)
    }
    revision = try decoder.unsigned()
    mark = Mark(rawValue: try decoder.unsigned()) ?? .applied
    let position = decoder.offset
    let number = try decoder.unsigned()
    let rejection = try decoder.optional { decoder throws(CBORError) in
      try RejectionMessage(from: &decoder)
    }
    switch (number, rejection) {
    case (0, nil): outcome = .reduced
    case (1, nil): outcome = .unchanged
    case (2, nil): outcome = .swallowed
    case (3, nil): outcome = .accepted
    case (4, let rejection?): outcome = .rejected(rejection)
    case (5, nil): outcome = .outcomeUnknown
    default:
      throw CBORError(.notAllowed("outcome \(number) does not go with its reason"), at: position)
    }
  }
}

extension RejectionMessage {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 3 else {
      throw CBORError(.notAllowed("a rejection is [code, message, path]"), at: start)
    }
    code = try decoder.unsigned()
    message = try decoder.text()
    path = try decoder.optional { decoder throws(CBORError) in try Path(from: &decoder) }
    decoder.close()
  }
}

extension Goodbye {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    code = GoodbyeCode(rawValue: try decoder.unsigned())
    message = try decoder.text()
    let name = try decoder.optional { decoder throws(CBORError) in try decoder.text() }
    let limit = try decoder.optionalUnsigned()
    let observed = try decoder.optionalUnsigned()
    if let name, let limit, let observed {
      self.limit = LimitBreach(name, limit: limit, observed: observed)
    } else {
      self.limit = nil
    }
    retryAfter = try decoder.optionalUnsigned()
  }
}

extension LimitBreach {
  init(_ name: String, limit: UInt64, observed: UInt64) {
    self.name = name
    self.limit = limit
    self.observed = observed
  }
}

extension CBORDecoder {
  mutating func optionalUnsigned() throws(CBORError) -> UInt64? {
    nullIfNext() ? nil : try unsigned()
  }
}
