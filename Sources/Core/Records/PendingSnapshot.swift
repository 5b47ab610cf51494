import CBOR
public import Values

/// A snapshot to be persisted: a copy of the state, and its metadata.
public struct PendingSnapshot<State: Synchronizable>: Sendable {
  public let state: State
  public let seed: HashSeed
  let schema: Schema
  /// The metadata of the state; `encode` computes its digest.
  public let head: JournalSnapshot
  let partBytes: Int

  /// A state at a revision, with its schema and its metadata, whose digest `encode` computes.
  public init(
    state: State, seed: HashSeed, schema: Schema, head: JournalSnapshot, partBytes: Int
  ) {
    self.state = state
    self.seed = seed
    self.schema = schema
    self.head = head
    self.partBytes = partBytes
  }

  /// Encode the state in parts, off the loop: `[schema, value]`, so that the bytes describe
  /// themselves. O(the state).
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
