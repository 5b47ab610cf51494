import CBOR
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
}

/// A snapshot that is to be kept: a copy of the state, and what must be known with it.
public struct KeptSnapshot<State: Synchronizable>: Sendable {
  public let state: State
  public let seed: HashSeed
  let schema: Schema
  var head: JournalSnapshot
  let partBytes: Int

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
