import CBOR
import Lockstep
import Records
import Schemas
public import Values
import Wire

// What runs once in the life of a process is compiled to be small here (`@_optimize(size)`): the daemon has
// 10 MB.

/// The envelope of a hand-over.
private enum Envelope {
  static let magic: [UInt8] = Array("LSHO".utf8)
  /// Rises with every change of the format.
  static let format: UInt32 = 5
  /// The formats that can be read. In format 3, connections have no version and are of version 1,
  /// and `unparsed` is at most the beginning of a frame. Before format 5, a run has neither a past nor
  /// a log.
  static let readable: ClosedRange<UInt32> = 3...5
  static let headBytes = 24
}

extension HandOver {
  /// The bytes for the next process. O(the state).
  public func encoded(schema: Schema) -> [UInt8] { encodedParts(schema: schema).flatMap(\.self) }

  /// The same bytes in two parts, neither of which is a copy: a state may be as large as memory
  /// allows.
  public func encodedParts(schema: Schema) -> [[UInt8]] {
    var encoder = CBOREncoder()
    encoder.array(6)
    schema.encode(into: &encoder)
    kept.state.encode(into: &encoder)
    encodeRun(into: &encoder)
    encoder.array(kept.sessions.count)
    for session in kept.sessions { session.encode(into: &encoder) }
    encoder.encode(connectionCount)
    encoder.array(connections.count)
    for connection in connections { connection.encode(into: &encoder) }

    return [Self.head(of: encoder.bytes), encoder.bytes]
  }

  /// The bytes of a hand-over with this item.
  package static func sealed(_ body: [UInt8]) -> [UInt8] { head(of: body) + body }

  private static func head(of body: [UInt8]) -> [UInt8] {
    var bytes = Envelope.magic
    func append(_ value: some FixedWidthInteger) {
      withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
    append(Envelope.format)
    append(UInt64(body.count))
    append(checksum(body[...]))
    return bytes
  }

  private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.withUnsafeBytes { Hashing.sip($0, seed: .unseeded) }
  }

  @_optimize(size)
  private func encodeRun(into encoder: inout CBOREncoder) {
    // The last item was added later: without it a former version reads the run, too.
    encoder.array(kept.leftOut.isEmpty ? 11 : 12)
    encoder.encode(kept.epoch)
    encoder.encode(kept.seed.rawValue)
    encoder.encode(kept.run)
    encoder.array(2 * kept.runs.count)
    for run in kept.runs {
      encoder.encode(run.run)
      encoder.encode(run.base)
    }
    encoder.encode(kept.revision)
    encoder.encode(kept.base)
    encoder.encode(kept.sequence)
    encoder.encode(kept.sessionCount)
    kept.history.encode(into: &encoder)
    kept.past.encode(into: &encoder)
    encoder.array(kept.log.count)
    for action in kept.log { action.encode(into: &encoder) }
    if kept.leftOut.isEmpty { return }
    encoder.array(kept.leftOut.count)
    for item in kept.leftOut { item.encode(into: &encoder) }
  }

  /// Read the hand-over of a former process. If its schema is another one, the state is matched by
  /// name.
  public init(_ bytes: [UInt8], schema current: Schema) throws(HandOverFailure) {
    let body = try Self.open(bytes)
    do throws(CBORError) {
      self = try CBORDecoder.read(Array(body)) { (decoder) throws(CBORError) in
        try Self(from: &decoder, current)
      }
    } catch {
      throw HandOverFailure("what the former process handed over cannot be read: \(error)")
    }
  }

  private static func open(_ bytes: [UInt8]) throws(HandOverFailure) -> ArraySlice<UInt8> {
    func number(_ range: Range<Int>) -> UInt64 {
      bytes[range].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard bytes.count >= Envelope.headBytes, Array(bytes[..<4]) == Envelope.magic else {
      throw HandOverFailure("what was handed over is no hand-over")
    }
    guard Envelope.readable.contains(UInt32(number(4..<8))) else {
      throw HandOverFailure(
        "the former process handed over in format \(number(4..<8)), this one reads "
          + "\(Envelope.readable.lowerBound) to \(Envelope.readable.upperBound)")
    }
    let body = bytes[Envelope.headBytes...]
    guard number(8..<16) == UInt64(body.count), number(16..<24) == checksum(body) else {
      throw HandOverFailure("what was handed over is damaged")
    }
    return body
  }

  @_optimize(size)
  private init(from decoder: inout CBORDecoder, _ current: Schema) throws(CBORError) {
    try decoder.expectArray(6, "a hand-over")
    let schema = try Schema(from: &decoder)
    // The seed is after the state: collections take it when the server adopts them.
    isTranslated = schema.fingerprint != current.fingerprint
    if isTranslated {
      let start = decoder.offset
      let translation: Translation
      do throws(SchemaMismatch) {
        translation = try Translation(from: schema, to: .schema(current), root: .state)
      } catch {
        throw CBORError(.notAllowed("the state is of another kind: \(error)"), at: start)
      }
      (dropped, leftOutNames) = (translation.dropped, translation.leftOut)
      let former = [UInt8](try decoder.rawItem())
      var value = try Self.translated(former, by: translation)
      kept = try Self.run(of: try Self.state(of: value), &decoder)
      let carrying = try kept.leftOut.carry(
        from: former, of: schema, by: translation, into: &value, of: current,
        ephemeral: EphemeralPaths(of: State.self))
      dropped += carrying.lost
      hasPutBack = carrying.hasPutBack
      if hasPutBack { kept.state = try Self.state(of: value) }
      kept.stateBytes = value.count
    } else {
      let start = decoder.offset
      let state = try State(from: &decoder, seed: .unseeded)
      let stateBytes = decoder.offset - start
      kept = try Self.run(of: state, &decoder)
      kept.stateBytes = stateBytes
    }
    if isTranslated {
      kept.history = History(base: kept.revision)
      kept.past = Past()
      for index in kept.log.indices { kept.log[index].action = nil }
    }
    kept.sessions = try decoder.list { decoder throws(CBORError) in
      try JournalSession(from: &decoder)
    }
    connectionCount = try decoder.count()
    connections = try decoder.list { decoder throws(CBORError) in
      try HandedConnection(from: &decoder)
    }
    decoder.close()
  }

  private static func translated(
    _ value: [UInt8], by translation: Translation
  ) throws(CBORError) -> [UInt8] {
    try CBORDecoder.read(value) { (decoder) throws(CBORError) in
      var encoder = CBOREncoder()
      try translation.value(from: &decoder, into: &encoder)
      return encoder.bytes
    }
  }

  private static func state(of value: [UInt8]) throws(CBORError) -> State {
    try CBORDecoder.read(value) { (decoder) throws(CBORError) in
      try State(from: &decoder, seed: .unseeded)
    }
  }

  @_optimize(size)
  private static func run(
    of state: State, _ decoder: inout CBORDecoder
  ) throws(CBORError) -> RestoredState<State> {
    let first = decoder.offset
    let items = try decoder.array()
    guard items == 9 || items == 11 || items == 12 else {
      throw CBORError(.notAllowed("a run has 9, 11 or 12 items, not \(items)"), at: first)
    }
    let (epoch, seed, run) = (
      try decoder.unsigned(), HashSeed(try decoder.unsigned()), try decoder.count()
    )
    let runs = try decoder.pairs { decoder throws(CBORError) in
      JournalRun(run: try decoder.count(), base: try decoder.count())
    }
    var kept = RestoredState(
      state: state, epoch: epoch, seed: seed, run: run, runs: runs,
      revision: try decoder.count(), base: try decoder.count(), sequence: try decoder.count(),
      sessionCount: try decoder.count())
    let start = decoder.offset
    kept.history = try History(from: &decoder)
    guard kept.history.newest <= kept.revision, kept.base <= kept.revision else {
      throw CBORError(.notAllowed("changes behind revision \(kept.revision)"), at: start)
    }
    if items > 9 {
      kept.past = try Past(from: &decoder)
      kept.log = try decoder.list { decoder throws(CBORError) in
        try LoggedAction(from: &decoder, salt: seed.rawValue)
      }
      // In the order in which they are looked for.
      let numbers = [0] + kept.log.map(\.sequence) + [kept.sequence &+ 1]
      guard (kept.past.newest ?? 0) <= kept.revision,
        zip(numbers, numbers.dropFirst()).allSatisfy({ $0 < $1 })
      else {
        throw CBORError(.notAllowed("a past or a log that is not of this run"), at: start)
      }
    }
    if items > 11 {
      kept.leftOut = try decoder.list { decoder throws(CBORError) in try LeftOut(from: &decoder) }
    }
    decoder.close()
    return kept
  }
}

extension JournalSession {
  func encode(into encoder: inout CBOREncoder) {
    encoder.array(5)
    encoder.encode(token.high)
    encoder.encode(token.low)
    encoder.encode(uid)
    encoder.encode(number)
    encoder.array(outcomes.count)
    for run in outcomes { run.encodeFrame(into: &encoder) }
  }

  init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(5, "a session")
    self.init(
      token: SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned()),
      uid: try decoder.unsigned(), number: try decoder.count())
    outcomes = try decoder.list { decoder throws(CBORError) in
      try Acknowledgement(fromFrame: &decoder)
    }
    decoder.close()
  }
}

extension Acknowledgement {
  /// Append the outcome in the form that clients get.
  func encodeFrame(into encoder: inout CBOREncoder) {
    var frame = CBOREncoder()
    ServerMessage.acknowledgement(self).encode(into: &frame)
    encoder.encode(bytes: frame.bytes)
  }

  init(fromFrame decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let bytes = [UInt8](try decoder.byteString())
    let message = bytes.withUnsafeBytes { try? ServerMessage($0, seed: .unseeded) }
    guard case .acknowledgement(let run)? = message, run.last < CBORDecoder.countLimit,
      run.revision < CBORDecoder.countLimit
    else {
      throw CBORError(.notAllowed("an outcome that is none"), at: start)
    }
    self = run
  }
}

extension HandedConnection {
  @_optimize(size)
  func encode(into encoder: inout CBOREncoder) {
    // The last item was added later: without it a former version reads the connection, too.
    encoder.array(wantsDecisions ? 18 : 17)
    for number in [id, peer.pid, peer.uid, peer.gid] { encoder.encode(number) }
    encoder.array(peer.groups.count)
    for group in peer.groups { encoder.encode(group) }
    encoder.encode(ordinal)
    encoder.encode(token != nil)
    for number in [token?.high ?? 0, token?.low ?? 0, offered.high, offered.low] {
      encoder.encode(number)
    }
    encoder.encode(label)
    encoder.encode(acknowledged)
    if let follows { encoder.encode(follows) } else { encoder.encodeNull() }
    encoder.array(6 * subscriptions.count)
    for subscription in subscriptions {
      encoder.encode(subscription.number)
      encoder.encode(subscription.scope)
      subscription.path.encode(into: &encoder)
      if let view = subscription.view { encoder.encode(bytes: view) } else { encoder.encodeNull() }
      encoder.encode(subscription.lastChange)
      encoder.encode(subscription.isCurrent)
    }
    encoder.array(2)
    encoder.encode(bytes: unparsed)
    encoder.encode(bytes: unsent)
    encoder.encode(version)
    if wantsDecisions { encoder.encode(true) }
  }

  @_optimize(size)
  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let items = try decoder.array()
    guard (16...18).contains(items) else {
      throw CBORError(.notAllowed("a connection has 16 to 18 items, not \(items)"), at: start)
    }
    id = try decoder.count()
    peer = Peer(
      pid: try decoder.unsigned(), uid: try decoder.unsigned(), gid: try decoder.unsigned(),
      groups: try decoder.list { decoder throws(CBORError) in try decoder.unsigned() })
    ordinal = try decoder.count()
    let hasSession = try decoder.bool()
    let session = SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned())
    token = hasSession ? session : nil
    offered = SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned())
    label = try decoder.text()
    acknowledged = try decoder.count()
    follows = decoder.nullIfNext() ? nil : try decoder.unsigned()
    subscriptions = try decoder.groups(of: 6) { decoder throws(CBORError) in
      Subscribed(
        number: try decoder.unsigned(), scope: try decoder.count(),
        path: try Path(from: &decoder),
        view: decoder.nullIfNext() ? nil : [UInt8](try decoder.byteString()),
        lastChange: try decoder.count(), isCurrent: try decoder.bool())
    }
    try decoder.expectArray(2, "the bytes of a connection")
    unparsed = [UInt8](try decoder.byteString())
    unsent = [UInt8](try decoder.byteString())
    decoder.close()
    version = items > 16 ? try decoder.unsigned() : 1
    wantsDecisions = items > 17 ? try decoder.bool() : false
    decoder.close()
  }
}

extension CBORDecoder {
  /// No daemon counts that far, so that continuing to count from a number that was read never
  /// overflows.
  static let countLimit: UInt64 = 1 << 62

  /// Read a number below `countLimit`.
  mutating func count() throws(CBORError) -> UInt64 {
    let start = offset
    let number = try unsigned()
    guard number < Self.countLimit else {
      throw CBORError(.notAllowed("\(number), to which nobody has counted"), at: start)
    }
    return number
  }
}
