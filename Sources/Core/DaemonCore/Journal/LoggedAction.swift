import CBOR
import Lockstep
import Records
import Values
import Wire

/// An action of a former process, for the log of the next: without its type, which may be of another
/// version.
public struct LoggedAction: Sendable {
  var sequence: UInt64
  var time: Timestamp
  var origin: Origin
  /// The client that began the cascade, unless `origin` says it.
  var client: ClientOrigin?
  var parent: UInt64?
  var name: String
  /// As it travels; nil if it was not kept, or has another form by now.
  var action: [UInt8]?
  var outcome: Acknowledgement.Outcome
  var revision: UInt64

  /// What the log had; nil for the action if that never travels.
  init<Action: SynchronizableAction>(_ record: ActionRecord<Action>) {
    sequence = record.sequence
    time = record.time
    origin = record.cause.origin
    if case .client = origin { client = nil } else { client = record.cause.client }
    parent = record.cause.parent
    name = record.name
    action = record.action.map { action in
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      return encoder.bytes
    }
    outcome = Acknowledgement.Outcome(record.outcome)
    revision = record.revision
  }

  /// What a journal has, which is not what led to the action; nil if that never came to the log.
  init?(_ row: JournalRow, action: ArraySlice<UInt8>?) {
    if row.name.isEmpty { return nil }
    sequence = row.sequence
    time = row.time
    origin = row.cause.origin
    if case .client = origin { client = nil } else { client = row.cause.client }
    parent = nil
    name = row.name
    self.action = action.map(Array.init)
    // What has no answer is there because of what it changed.
    outcome = row.change != nil ? .reduced : row.answer?.outcome ?? .reduced
    revision = row.revision
  }

  /// The action; nil if it was not kept, or this version does not know it.
  func decoded<Action: SynchronizableAction>(as type: Action.Type, seed: HashSeed) -> Action? {
    guard let action else { return nil }
    return try? CBORDecoder.read(action) { (decoder) throws(CBORError) in
      try Action(from: &decoder, seed: seed)
    }
  }

  var cause: Cause { Cause(origin, client: client, parent: parent) }

  var reduction: Reduction {
    switch outcome {
    case .reduced: .changed(revision)
    case .unchanged: .unchanged
    case .swallowed: .swallowed
    case .accepted, .outcomeUnknown: .accepted
    case .rejected(let message):
      .rejected(
        Rejection(
          Rejection.Code(rawValue: message.code), message.message, at: message.path))
    }
  }
}

// MARK: Handing over

extension LoggedAction {
  /// Append the action as one item.
  func encode(into encoder: inout CBOREncoder) {
    encoder.array(7)
    // It has the numbers, too.
    Acknowledgement(
      first: sequence, last: sequence, revision: revision, mark: .applied, outcome, sequence: nil
    ).encodeFrame(into: &encoder)
    encoder.encode(time.nanoseconds)
    origin.encode(into: &encoder)
    encoder.encodeOptional(client) { $1.encode(into: &$0) }
    encoder.encodeOptional(parent) { $0.encode($1) }
    encoder.encode(name)
    encoder.encodeOptional(action) { $0.encode(bytes: $1) }
  }

  /// Read what `encode` has written; any other input throws. `salt` is the seed of the store.
  init(from decoder: inout CBORDecoder, salt: UInt64) throws(CBORError) {
    try decoder.expectArray(7, "a logged action")
    let result = try Acknowledgement(fromFrame: &decoder)
    (sequence, revision, outcome) = (result.last, result.revision, result.outcome)
    time = Timestamp(nanoseconds: try decoder.integer())
    origin = try Origin(from: &decoder, salt: salt)
    client = decoder.nullIfNext() ? nil : try ClientOrigin(from: &decoder)
    parent = decoder.nullIfNext() ? nil : try decoder.count()
    name = try decoder.text()
    action = decoder.nullIfNext() ? nil : [UInt8](try decoder.byteString())
    decoder.close()
  }
}

extension ClientOrigin {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    encoder.array(6)
    for number in [connection, session, pid, uid, gid] { encoder.encode(number) }
    encoder.encode(label)
  }

  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(6, "a client")
    let (connection, session) = (try decoder.unsigned(), try decoder.unsigned())
    self.init(
      connection: connection, pid: try decoder.unsigned(), uid: try decoder.unsigned(),
      gid: try decoder.unsigned(), label: try decoder.text(), session: session)
    decoder.close()
  }
}

extension Origin {
  private enum Kind: UInt64 { case client, effect, timer, middleware, owner }

  fileprivate func encode(into encoder: inout CBOREncoder) {
    func begin(_ kind: Kind, _ values: Int) {
      encoder.array(1 + values)
      encoder.encode(kind.rawValue)
    }
    switch self {
    case .client(let client):
      begin(.client, 1)
      client.encode(into: &encoder)
    case .effect(let id, let name):
      begin(.effect, 2)
      encoder.encode(id.rawValue)
      encoder.encode(name)
    case .timer(let id, let name):
      begin(.timer, 2)
      encoder.encode(id.rawValue)
      encoder.encode(name)
    case .middleware(let name):
      begin(.middleware, 1)
      encoder.encode(name)
    case .owner: begin(.owner, 0)
    }
  }

  fileprivate init(from decoder: inout CBORDecoder, salt: UInt64) throws(CBORError) {
    let start = decoder.offset
    _ = try decoder.array()
    switch Kind(rawValue: try decoder.unsigned()) {
    case .client: self = .client(try ClientOrigin(from: &decoder))
    case .effect:
      self = .effect(EffectID(try decoder.unsigned(), salt: salt), name: try decoder.text())
    case .timer:
      self = .timer(EffectID(try decoder.unsigned(), salt: salt), name: try decoder.text())
    case .middleware: self = .middleware(try decoder.text())
    case .owner: self = .owner
    case nil: throw CBORError(.notAllowed("no origin of an action"), at: start)
    }
    decoder.close()
  }
}
