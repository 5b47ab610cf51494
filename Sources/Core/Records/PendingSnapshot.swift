import CBOR
public import Values

/// A snapshot to be persisted: a copy of the state, and its metadata.
public struct PendingSnapshot<State: Synchronizable>: Sendable {
  public let state: State
  public let seed: HashSeed
  let schema: Schema
  /// The metadata of the state; `encode` computes its digest, and puts its sessions in order.
  public let head: JournalSnapshot
  /// What former versions kept and this one does not know.
  let leftOut: [LeftOut]
  /// As many bytes as the state may take; 0 if that is not known.
  let expectedBytes: Int

  /// A state at a revision, with its schema and its metadata, whose digest `encode` computes.
  public init(
    state: State, seed: HashSeed, schema: Schema, head: JournalSnapshot, leftOut: [LeftOut] = [],
    expectedBytes: Int = 0
  ) {
    self.state = state
    self.seed = seed
    self.schema = schema
    self.head = head
    self.leftOut = leftOut
    self.expectedBytes = expectedBytes
  }

  /// Encode the state, off the loop: `[schema, value]`, so that the bytes describe themselves, or
  /// `[schema, value, [left out, …]]` if former versions have left anything. O(the state).
  ///
  /// There is room for the expected bytes. If there are more, or nothing is expected, the room is
  /// doubled, which takes three times the bytes for a moment.
  public func encode() -> (head: JournalSnapshot, bytes: [UInt8]) {
    var encoder = CBOREncoder(reservingCapacity: expectedBytes)
    encoder.array(leftOut.isEmpty ? 2 : 3)
    schema.encode(into: &encoder)
    state.encode(into: &encoder)
    if !leftOut.isEmpty {
      encoder.array(leftOut.count)
      for item in leftOut { item.encode(into: &encoder) }
    }
    var head = head
    head.sessions = head.sessionsInOrder
    head.digest = Digest(state.digest(seed: seed))
    return (head, encoder.bytes)
  }
}
