import Access
public import CBOR
public import Lockstep
public import Values
import Wire

// Events as CBOR: an array of the case's number and its values.
//
// An effect's action is encoded in its wire form. An action that never travels, such as a reactor's
// mutation, cannot be encoded (`travels`).

extension Event where Action: SynchronizableAction {
  /// The number of an event's case in a recording. The numbers are part of the format and never
  /// change.
  private enum Number: UInt64 {
    case opened, received, closed, blocked, drained
    case snapshotEncoded, snapshotImpossible, stateMeasured, memoryMeasured
    case turnEnded, journal, started, exited, policy, answered, tick, stop
    case acted, effectSent, effectCancelled, effectEnded, clockSet
    case handingOver, scopesReserved, inherited
    case actionDecoded, checkpointMade, digestComputed
  }

  public func encode(into encoder: inout CBOREncoder) {
    func begin(_ number: Number, _ values: Int = 0) {
      encoder.array(1 + values)
      encoder.encode(number.rawValue)
    }
    func begin(_ number: Number, _ id: ConnectionID, _ more: Int = 0) {
      begin(number, 1 + more)
      encoder.encode(id.rawValue)
    }
    switch self {
    case .opened(let id, let peer, let token):
      begin(.opened, id, 6)
      for number in [peer.pid, peer.uid, peer.gid] { encoder.encode(number) }
      encoder.array(peer.groups.count)
      for group in peer.groups { encoder.encode(group) }
      encoder.encode(token.high)
      encoder.encode(token.low)
    case .received(let id, let bytes):
      begin(.received, id, 1)
      encoder.encode(bytes: bytes)
    case .closed(let id): begin(.closed, id)
    case .blocked(let id, let unsent):
      begin(.blocked, id, 1)
      encoder.encode(unsent)
    case .drained(let id): begin(.drained, id)
    case .snapshotEncoded(let job, let frames, let wholeBytes):
      begin(.snapshotEncoded, 3)
      encoder.encode(job.rawValue)
      encoder.array(frames.count)
      for frame in frames { encoder.encode(bytes: frame) }
      encoder.encodeOptional(wholeBytes) { $0.encode($1) }
    case .snapshotImpossible(let job):
      begin(.snapshotImpossible, 1)
      encoder.encode(job.rawValue)
    // What it was decoded to is in the bytes that were received before.
    case .actionDecoded(let id, let action):
      begin(.actionDecoded, id, 1)
      encoder.encode(action != nil)
    case .checkpointMade(let revision, let bytes):
      begin(.checkpointMade, 2)
      encoder.encode(revision)
      encoder.encode(bytes: bytes)
    case .digestComputed: begin(.digestComputed)
    case .stateMeasured(let measure):
      begin(.stateMeasured, 2)
      encoder.encode(measure.encoded)
      encoder.encode(measure.memory)
    case .memoryMeasured(let reading):
      begin(.memoryMeasured, 1)
      encoder.encodeOptional(reading) { encoder, reading in
        encoder.array(3)
        encoder.encode(reading.free)
        encoder.encode(reading.limit)
        encoder.encode(reading.name)
      }
    case .turnEnded: begin(.turnEnded)
    case .journal(let event):
      begin(.journal, 1)
      event.encode(into: &encoder)
    case .started(let start):
      begin(.started, 1)
      encoder.encode(start.number)
    case .exited(let id): begin(.exited, id)
    case .policy(let policy):
      begin(.policy, 1)
      policy.encode(into: &encoder)
    case .answered(let id, let query, let answer):
      begin(.answered, id, 2)
      encoder.encode(query)
      encoder.raw(answer)
    case .changeFound(let id, let query, let change):
      begin(.answered, id, 2)
      encoder.encode(query)
      encoder.raw(change.report)
    case .tick: begin(.tick)
    case .stop(let retryAfter):
      begin(.stop, 1)
      encoder.encodeOptional(retryAfter) { $0.encode($1) }
    case .acted(let action):
      begin(.acted, 1)
      action.encode(into: &encoder)
    case .effectSent(let id, let action):
      begin(.effectSent, 2)
      encoder.encode(id.rawValue)
      action.encode(into: &encoder)
    case .effectCancelled(let name):
      begin(.effectCancelled, 1)
      let texts = name.texts
      encoder.array(texts.count)
      for text in texts { encoder.encode(text) }
    case .effectEnded(let id, let error):
      begin(.effectEnded, 2)
      encoder.encode(id.rawValue)
      encoder.encodeOptional(error) { $0.encode($1) }
    case .clockSet(let time):
      begin(.clockSet, 1)
      encoder.encode(time.nanoseconds)
    case .handingOver(let retryAfter):
      begin(.handingOver, 1)
      encoder.encode(retryAfter)
    case .scopesReserved(let scopes):
      begin(.scopesReserved, 1)
      encoder.array(scopes.count)
      for scope in scopes { encoder.encode(scope) }
    case .inherited(let connection, let isTranslated):
      begin(.inherited, 2)
      connection.encode(into: &encoder)
      encoder.encode(isTranslated)
    }
  }

  /// Read the output of `encode`. Collections of an action take the seed; names of effects are
  /// texts until `StoreCore.runningName` finds the key.
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    _ = try decoder.array()
    let number = try decoder.unsigned()
    guard let number = Number(rawValue: number) else {
      throw CBORError(.notAllowed("\(number), which is no event"), at: start)
    }
    switch number {
    case .opened: self = try Self.opened(&decoder)
    case .received: self = .received(try decoder.connection(), try decoder.byteString())
    case .closed: self = .closed(try decoder.connection())
    case .blocked: self = .blocked(try decoder.connection(), unsent: try decoder.byteCount())
    case .drained: self = .drained(try decoder.connection())
    case .snapshotEncoded:
      self = .snapshotEncoded(
        SnapshotJobID(try decoder.unsigned()),
        try decoder.list { decoder throws(CBORError) in try decoder.byteString() },
        wholeBytes: decoder.nullIfNext() ? nil : try decoder.byteCount())
    case .snapshotImpossible: self = .snapshotImpossible(SnapshotJobID(try decoder.unsigned()))
    case .actionDecoded:
      self = .actionDecoded(
        try decoder.connection(), try decoder.bool() ? .recorded : nil)
    case .checkpointMade:
      self = .checkpointMade(try decoder.unsigned(), try decoder.byteString())
    case .digestComputed: self = .digestComputed
    case .stateMeasured:
      let encoded = try decoder.byteCount()
      self = .stateMeasured(StateMeasure(encoded: encoded, memory: try decoder.byteCount()))
    case .memoryMeasured: self = .memoryMeasured(try MemoryReading.orNil(&decoder))
    case .turnEnded: self = .turnEnded
    case .journal: self = .journal(try JournalEvent(from: &decoder))
    case .started: self = .started(try Start(from: &decoder))
    case .exited: self = .exited(try decoder.connection())
    case .policy: self = .policy(try Policy(from: &decoder))
    case .answered:
      self = .answered(
        try decoder.connection(), query: try decoder.unsigned(),
        [UInt8](try decoder.rawItem()))
    case .tick: self = .tick
    case .stop: self = .stop(retryAfter: decoder.nullIfNext() ? nil : try decoder.unsigned())
    case .acted: self = .acted(try Action(from: &decoder, seed: seed))
    case .effectSent:
      self = .effectSent(
        EffectID(try decoder.unsigned(), salt: seed.rawValue),
        try Action(from: &decoder, seed: seed))
    case .effectCancelled:
      self = .effectCancelled(
        ScopedEffectKey(
          texts: try decoder.list { decoder throws(CBORError) in try decoder.text() }))
    case .effectEnded:
      self = .effectEnded(
        EffectID(try decoder.unsigned(), salt: seed.rawValue),
        unhandled: decoder.nullIfNext() ? nil : try decoder.text())
    case .clockSet: self = .clockSet(Timestamp(nanoseconds: try decoder.integer()))
    case .handingOver: self = .handingOver(retryAfter: try decoder.unsigned())
    case .scopesReserved:
      self = .scopesReserved(
        try decoder.list { decoder throws(CBORError) in try decoder.unsigned() })
    case .inherited:
      self = .inherited(
        try HandedConnection(from: &decoder), isTranslated: try decoder.bool())
    }
    decoder.close()
  }

  private static func opened(_ decoder: inout CBORDecoder) throws(CBORError) -> Event {
    let id = try decoder.connection()
    let peer = Peer(
      pid: try decoder.unsigned(), uid: try decoder.unsigned(), gid: try decoder.unsigned(),
      groups: try decoder.list { decoder throws(CBORError) in try decoder.unsigned() })
    let token = SessionToken(high: try decoder.unsigned(), low: try decoder.unsigned())
    return .opened(id, peer, token)
  }
}

extension MemoryReading {
  fileprivate static func orNil(
    _ decoder: inout CBORDecoder
  ) throws(CBORError) -> MemoryReading? {
    if decoder.nullIfNext() { return nil }
    try decoder.expectArray(3, "a reading of memory")
    let reading = MemoryReading(
      free: try decoder.byteCount(), limit: try decoder.byteCount(), name: try decoder.text())
    decoder.close()
    return reading
  }
}

extension Start {
  fileprivate var number: UInt64 {
    switch self {
    case .first: 0
    case .restarted: 1
    case .crashed: 2
    }
  }

  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    switch try decoder.unsigned() {
    case 0: self = .first
    case 1: self = .restarted
    case 2: self = .crashed
    case let number: throw CBORError(.notAllowed("\(number), which is no start"), at: start)
    }
  }
}

extension JournalEvent {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    switch self {
    case .committed(let number):
      encoder.encode(0)
      encoder.encode(number)
    case .failed(let reason):
      encoder.encode(1)
      encoder.encode(reason)
    case .reopened:
      encoder.encode(2)
      encoder.encodeNull()
    case .stillFailing(let reason):
      encoder.encode(3)
      encoder.encode(reason)
    case .snapshotKept(let bytes):
      encoder.encode(4)
      encoder.encode(bytes)
    case .snapshotImpossible(let reason):
      encoder.encode(5)
      encoder.encode(reason)
    }
  }

  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(2, "an event of the journal")
    let start = decoder.offset
    switch try decoder.unsigned() {
    case 0: self = .committed(through: try decoder.unsigned())
    case 1: self = .failed(try decoder.text())
    case 2:
      _ = decoder.nullIfNext()
      self = .reopened
    case 3: self = .stillFailing(try decoder.text())
    case 4: self = .snapshotKept(bytes: try decoder.byteCount())
    case 5: self = .snapshotImpossible(try decoder.text())
    case let number:
      throw CBORError(.notAllowed("\(number), which is no event of the journal"), at: start)
    }
    decoder.close()
  }
}

extension CBORDecoder {
  mutating func int() throws(CBORError) -> Int { Int(clamping: try integer()) }

  /// A number of bytes; negative if some are missing. What is beyond 2^48 is read as 2^48: no process has more,
  /// and thousands of such numbers can be added, or one multiplied, without an overflow.
  mutating func byteCount() throws(CBORError) -> Int {
    let most = 1 << 48
    return min(max(try int(), -most), most)
  }

  fileprivate mutating func connection() throws(CBORError) -> ConnectionID {
    ConnectionID(try unsigned())
  }
}
