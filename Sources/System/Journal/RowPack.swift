import CBOR
import Lockstep
import Records
import Values
import Wire

// Theory of operation
//
// SQLite takes some 9,000 instructions for a row, whatever is in it. So of the actions of a busy turn
// one is stored in the columns of a row, and those before it are packed in one of its columns: a CBOR
// sequence (RFC 8742) of one array for each,
//
//     [sequence, revision, time, cause, name, action, change, answer]
//     [sequence, revision, time, cause, name, action, change, answer, turn]
//
// The second is the last of its turn, at whose end the revision was greater by `turn`. The first three
// are differences to the action before in the pack, or to 0. `cause` and `name` are null if they are
// those of the action before.
//
//     cause    [kind, actor, effect] or [kind, actor, effect, connection, pid, uid, gid, label]
//     change   null, or [revisions since the change before, patch]
//     answer   null, or [session, number, outcome], and if rejected [..., code, reason, place]
//
// `actor`, `effect`, `action` and `place` may be null. The seal of the row covers the pack.

/// Actions that wait to be stored in the row of one after them.
struct RowPack {
  /// The number of actions of a turn from which on they are packed; fewer have rows of their own,
  /// for people to read with `sqlite3`.
  static let worthwhile = 8
  /// The most turns that share a row: a byte that the disk has changed costs a row and those behind it.
  static let turns = 16
  /// The bytes at which a pack is full. An action with more is not packed.
  static let limit = 64 << 10

  private var encoder = CBOREncoder()
  private(set) var count = 0
  /// The revision of the newest change in the pack.
  private(set) var changed: UInt64?
  private var last = Position()
  private var cause: RowCause?
  /// What `cause` was made of: the actions of a connection share it.
  private var source: Cause?
  private var name: String?

  private struct Position {
    var (sequence, revision): (UInt64, UInt64) = (0, 0)
    var time: Int64 = 0
  }

  var bytes: [UInt8] { encoder.bytes }

  mutating func removeAll() {
    encoder.bytes.removeAll(keepingCapacity: true)
    (count, changed, last, cause, source, name) = (0, nil, Position(), nil, nil, nil)
  }

  /// Add a row that names ranges of `bytes`, of an action of the session of this number; the last of a
  /// turn with the revision at its end. Returns false, and adds nothing, if the pack is full or the
  /// row is too large. The row is read where it is, and not kept. O(its bytes).
  mutating func add(
    _ row: UnsafePointer<JournalRow>, _ bytes: UnsafeRawBufferPointer, session: UInt64?,
    turn: UInt64?
  ) -> Bool {
    let size = (row.pointee.action?.count ?? 0) + (row.pointee.change?.patch.count ?? 0)
    guard encoder.bytes.count + size < Self.limit else { return false }
    encoder.array(turn == nil ? 8 : 9)
    encoder.encode(row.pointee.sequence &- last.sequence)
    encoder.encode(row.pointee.revision &- last.revision)
    encoder.encode(row.pointee.time.nanoseconds &- last.time)
    (last.sequence, last.revision, last.time) = (
      row.pointee.sequence, row.pointee.revision, row.pointee.time.nanoseconds
    )
    addCause(row.pointee.cause)
    addName(row.pointee.name)
    add(row.pointee.action.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) })
    if let change = row.pointee.change {
      encoder.array(2)
      encoder.encode(row.pointee.revision &- change.base)
      add(UnsafeRawBufferPointer(rebasing: bytes[change.patch]))
      changed = row.pointee.revision
    } else {
      encoder.encodeNull()
    }
    if let answer = row.pointee.answer, let session {
      add(answer, session)
    } else {
      encoder.encodeNull()
    }
    if let turn { encoder.encode(turn &- row.pointee.revision) }
    count += 1
    return true
  }

  private mutating func addCause(_ source: Cause) {
    if self.source?.isTriviallyIdentical(to: source) == true { return encoder.encodeNull() }
    self.source = source
    let next = RowCause(source)
    if cause == next { return encoder.encodeNull() }
    encoder.array(next.client == nil ? 3 : 8)
    encoder.encode(next.kind.rawValue)
    add(next.actor)
    if let effect = next.effect { encoder.encode(effect) } else { encoder.encodeNull() }
    if let client = next.client {
      for number in [client.connection, client.pid, client.uid, client.gid] {
        encoder.encode(number)
      }
      encoder.encode(client.label)
    }
    cause = next
  }

  private mutating func addName(_ next: String) {
    if name == next { return encoder.encodeNull() }
    encoder.encode(next)
    name = next
  }

  private mutating func add(_ text: String?) {
    if let text { encoder.encode(text) } else { encoder.encodeNull() }
  }

  private mutating func add(_ bytes: UnsafeRawBufferPointer?) {
    guard let bytes else { return encoder.encodeNull() }
    encoder.head(.bytes, UInt64(bytes.count))
    encoder.bytes.append(contentsOf: bytes)
  }

  private mutating func add(_ answer: JournalRow.Answer, _ session: UInt64) {
    let (kind, rejection) = OutcomeKind.of(answer.outcome)
    encoder.array(rejection == nil ? 3 : 6)
    encoder.encode(session)
    encoder.encode(answer.number)
    encoder.encode(kind.rawValue)
    guard let rejection else { return }
    encoder.encode(rejection.code)
    encoder.encode(rejection.message)
    if let path = rejection.path { path.encode(into: &encoder) } else { encoder.encodeNull() }
  }
}

/// Reads the actions of a pack, one after the other.
struct RowPackReader {
  /// The pack. The rows name ranges of it.
  private(set) var bytes: [UInt8] = []
  /// The number of actions that have not been read.
  private(set) var left = 0
  private var offset = 0
  private var cause = RowCause()
  /// The action that was read last, without its cause and its session's token.
  private(set) var row = JournalRow(
    sequence: 0, time: Timestamp(nanoseconds: 0), cause: .owner, name: "", action: nil,
    revision: 0, change: nil, answer: nil)
  /// The number of the session that it answers.
  private(set) var session: UInt64?
  /// The revision at the end of its turn, if it is the last of one.
  private(set) var turn: UInt64?
  private var answer: (number: UInt64, outcome: Acknowledgement.Outcome)?

  /// Begin to read a pack of so many actions.
  mutating func begin(_ pack: UnsafeRawBufferPointer, count: Int) {
    self = RowPackReader()
    bytes = Array(pack)
    left = count
  }

  /// Go to the next action. Throws when the pack is none, or ends with another than the last.
  mutating func next() throws(CBORError) {
    let start = offset
    var (row, cause) = (row, cause)
    var (session, turn): (UInt64?, UInt64?)
    var answer: (number: UInt64, outcome: Acknowledgement.Outcome)?
    let isLast = left == 1
    let result = bytes.withUnsafeBytes { bytes -> Result<Int, CBORError> in
      do throws(CBORError) {
        var decoder = CBORDecoder(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        let count = try decoder.array()
        guard count == 8 || count == 9 else {
          throw CBORError(.notAllowed("a packed action of \(count) items"), at: start)
        }
        row.sequence &+= try decoder.unsigned()
        row.revision &+= try decoder.unsigned()
        row.time = Timestamp(nanoseconds: row.time.nanoseconds &+ (try decoder.integer()))
        if !decoder.nullIfNext() { cause = try RowCause(from: &decoder) }
        if !decoder.nullIfNext() { row.name = try decoder.text() }
        row.action = decoder.nullIfNext() ? nil : try Self.range(&decoder, from: start)
        row.change = try Self.change(&decoder, row.revision, from: start)
        if !decoder.nullIfNext() {
          (session, answer) = try Self.answer(&decoder)
        }
        if count == 9 { turn = row.revision &+ (try decoder.unsigned()) }
        decoder.close()
        if isLast, !decoder.isAtEnd {
          throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
        }
        return .success(decoder.offset)
      } catch {
        return .failure(error)
      }
    }
    offset = start + (try result.get())
    left -= 1
    (self.row, self.cause, self.session, self.answer) = (row, cause, session, answer)
    self.turn = turn
  }

  /// The action that was read last, of a session with this token.
  func row(token: SessionToken?, salt: UInt64) -> JournalRow? {
    var row = row
    guard let cause = cause.cause(session: session ?? 0, salt: salt) else { return nil }
    row.cause = cause
    if let token, let answer {
      row.answer = JournalRow.Answer(
        session: token, number: answer.number, outcome: answer.outcome)
    }
    return row
  }

  private static func range(
    _ decoder: inout CBORDecoder, from start: Int
  ) throws(CBORError) -> Range<Int> {
    let count = try decoder.byteString().count
    return start + decoder.offset - count..<start + decoder.offset
  }

  private static func change(
    _ decoder: inout CBORDecoder, _ revision: UInt64, from start: Int
  ) throws(CBORError) -> JournalRow.Change? {
    if decoder.nullIfNext() { return nil }
    try decoder.expectArray(2, "a change")
    let base = revision &- (try decoder.unsigned())
    let patch = try range(&decoder, from: start)
    decoder.close()
    return JournalRow.Change(base: base, patch: patch)
  }

  private static func answer(
    _ decoder: inout CBORDecoder
  ) throws(CBORError) -> (UInt64, (number: UInt64, outcome: Acknowledgement.Outcome)) {
    let start = decoder.offset
    let count = try decoder.array()
    let (session, number) = (try decoder.unsigned(), try decoder.unsigned())
    let kind = OutcomeKind(rawValue: try decoder.integer())
    guard let kind, count == (kind == .rejected ? 6 : 3) else {
      throw CBORError(.notAllowed("an answer of \(count) items"), at: start)
    }
    var rejection: RejectionMessage?
    if kind == .rejected {
      let (code, message) = (try decoder.unsigned(), try decoder.text())
      rejection = RejectionMessage(
        code: code, message: message,
        path: decoder.nullIfNext() ? nil : try Path(from: &decoder))
    }
    decoder.close()
    return (session, (number, kind.outcome(rejection)))
  }
}

/// The sender of an action, as the file has it.
struct RowCause: Equatable {
  var kind = OriginKind.owner
  var actor: String?
  var effect: UInt64?
  /// Without its session, which the row's answer names.
  var client: ClientOrigin?

  init() {}

  init(_ cause: Cause) {
    client = cause.client
    switch cause.origin {
    case .client(let origin): (kind, client) = (.client, origin)
    case .effect(let id, let name): (kind, actor, effect) = (.effect, name, id.rawValue)
    case .timer(let id, let name): (kind, actor, effect) = (.timer, name, id.rawValue)
    case .middleware(let name): (kind, actor) = (.middleware, name)
    case .owner: break
    }
    client?.session = 0
  }

  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let count = try decoder.array()
    guard count == 3 || count == 8, let kind = OriginKind(rawValue: try decoder.integer()) else {
      throw CBORError(.notAllowed("a cause that is none"), at: start)
    }
    self.kind = kind
    actor = decoder.nullIfNext() ? nil : try decoder.text()
    effect = decoder.nullIfNext() ? nil : try decoder.unsigned()
    if count == 8 {
      client = ClientOrigin(
        connection: try decoder.unsigned(), pid: try decoder.unsigned(),
        uid: try decoder.unsigned(), gid: try decoder.unsigned(), label: try decoder.text())
    }
    decoder.close()
  }

  /// The cause of an action of a session; nil if a client is missing.
  func cause(session: UInt64, salt: UInt64) -> Cause? {
    var client = client
    client?.session = session
    let effect = EffectID(effect ?? 0, salt: salt)
    switch kind {
    case .owner: return Cause(.owner, client: client)
    case .client: return client.map { Cause(.client($0)) }
    case .effect: return Cause(.effect(effect, name: actor ?? ""), client: client)
    case .timer: return Cause(.timer(effect, name: actor ?? ""), client: client)
    case .middleware: return Cause(.middleware(actor ?? ""), client: client)
    }
  }
}

/// How origins are numbered in the file.
enum OriginKind: Int64 {
  case owner = 0
  case client = 1
  case effect = 2
  case timer = 3
  case middleware = 4
}

/// How outcomes are numbered in the file.
enum OutcomeKind: Int64 {
  case reduced = 0
  case unchanged = 1
  case swallowed = 2
  case accepted = 3
  case rejected = 4
  case unknown = 5

  static func of(_ outcome: Acknowledgement.Outcome) -> (OutcomeKind, RejectionMessage?) {
    switch outcome {
    case .reduced: (.reduced, nil)
    case .unchanged: (.unchanged, nil)
    case .swallowed: (.swallowed, nil)
    case .accepted: (.accepted, nil)
    case .rejected(let message): (.rejected, message)
    case .outcomeUnknown: (.unknown, nil)
    }
  }

  func outcome(_ rejection: RejectionMessage?) -> Acknowledgement.Outcome {
    switch self {
    case .reduced: .reduced
    case .unchanged: .unchanged
    case .swallowed: .swallowed
    case .accepted: .accepted
    case .rejected: .rejected(rejection ?? RejectionMessage(code: 0, message: "", path: nil))
    case .unknown: .outcomeUnknown
    }
  }
}
