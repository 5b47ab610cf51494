public import CBOR

/// A set travels as the array of its elements in the order of their encoded bytes, and is replaced
/// whole.
extension Set: Synchronizable where Element: SyncKey {
  /// Whether both hold the same elements. O(n).
  public func isSame(as other: Set) -> Bool {
    count == other.count
      && allSatisfy { element in
        other.firstIndex(of: element).map { Element.isSame(other[$0], element) } ?? false
      }
  }

  /// O(n log n).
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(count)
    guard encoder.hasRoom(for: SmallForm.bytes(ofSorted: count)) else { return }
    guard let sorted = EncodedKey.sorted(self, upTo: encoder.room, { $0 }) else {
      return encoder.leaveOut()
    }
    for (bytes, _) in sorted { encoder.raw(bytes) }
  }

  /// Decode a set whose elements come in any order, each once.
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let count = try decoder.array()
    self.init()
    for _ in 0..<count {
      let start = decoder.offset
      guard insert(try Element(from: &decoder)).inserted else {
        throw CBORError(.notAllowed("the same element twice in a set"), at: start)
      }
    }
    decoder.close()
  }
}

extension Set: SynchronizableScalar where Element: SyncKey {
  /// The digest of the array of the elements. O(n log n).
  public func digest(seed: HashSeed) -> UInt64 {
    var polynomial: UInt64 = 0
    for (bytes, _) in EncodedKey.sorted(self, { $0 }) {
      let digest = bytes.withUnsafeBytes { Hashing.sip($0, seed: seed) }
      polynomial = polynomial &* Hashing.arrayBase &+ digest
    }
    return Hashing.array(polynomial: polynomial, count: count)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .array(Element.schemaKind)
  }
}
