import CBOR
public import Lockstep
public import Values

/// What a daemon keeps of its state beyond its process.
public enum Durability: String, CaseIterable, Sendable {
  /// Nothing.
  case none
  /// Every change, soon: a crash of the process loses those of its last milliseconds, one of the
  /// machine perhaps seconds. Nothing is acknowledged as durable.
  case async
  /// Every change. What is acknowledged as durable survives both.
  case sync
}

/// What became of what the server asked to be kept.
public enum JournalNews: Equatable, Sendable {
  /// Every batch up to this number is safe.
  case committed(through: UInt64)
  /// Keeping failed. Every batch that is not committed is lost to the file, and so is what follows
  /// until a fresh snapshot is kept.
  case failed(String)
  /// The file can be written again.
  case reopened
  /// The file cannot be written yet.
  case stillFailing(String)
  /// A snapshot of so many bytes is kept.
  case snapshotKept(bytes: Int)
  /// The snapshot that was commanded last cannot be made, and nothing else has happened.
  case snapshotImpossible(String)
}

/// A snapshot that is to be kept: a copy of the state, and what must be known with it.
public struct KeptSnapshot<State: Synchronizable>: Sendable {
  public let state: State
  public let seed: HashSeed
  let schema: Schema
  let head: JournalSnapshot
  let partBytes: Int

  /// The state of a former process that has just been handed over.
  public init(handing kept: Restoration<State>, schema: Schema, time: Timestamp) {
    var state = kept.state
    state.adopt(seed: kept.seed)
    EphemeralFields.reset(&state)
    self.state = state
    seed = kept.seed
    self.schema = schema
    head = JournalSnapshot(
      revision: kept.revision, base: kept.base, sequence: kept.sequence, time: time,
      digest: Digest(0), sessions: kept.sessions, sessionCount: kept.sessionCount)
    partBytes = 1 << 20
  }

  init(state: State, seed: HashSeed, schema: Schema, head: JournalSnapshot, partBytes: Int) {
    self.state = state
    self.seed = seed
    self.schema = schema
    self.head = head
    self.partBytes = partBytes
  }

  /// Encode the state in parts, beside the loop: `[schema, value]`, so that the bytes say what they
  /// are. O(the state).
  public func encode() -> (head: JournalSnapshot, parts: [[UInt8]]) {
    var encoder = CBOREncoder()
    encoder.array(2)
    schema.encode(into: &encoder)
    state.encode(into: &encoder)
    var head = head
    head.digest = Digest(state.digest(seed: seed))
    let bytes = encoder.bytes
    let parts = stride(from: 0, to: bytes.count, by: partBytes).map {
      Array(bytes[$0..<min($0 + partBytes, bytes.count)])
    }
    return (head, parts)
  }
}
