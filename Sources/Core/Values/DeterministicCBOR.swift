import CBOR

/// Values as deterministic CBOR (RFC 8949, 4.2.1): keys in bytewise order.
public enum DeterministicCBOR {
  public static func bytes(_ value: Value) -> [UInt8] {
    var encoder = CBOREncoder()
    write(value, &encoder)
    return encoder.bytes
  }

  private static func write(_ value: Value, _ encoder: inout CBOREncoder) {
    switch value {
    case .array(let elements):
      encoder.array(elements.count)
      for element in elements { write(element, &encoder) }
    case .object(let entries):
      encoder.map(entries.count)
      let sorted = entries.sorted { first, second in
        let (count, other) = (first.key.utf8.count, second.key.utf8.count)
        // The encoded length comes first, so a shorter text sorts before a longer one.
        return count != other ? count < other : String.precedes(first.key, second.key)
      }
      for (key, value) in sorted {
        encoder.encode(key)
        write(value, &encoder)
      }
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      value.encode(into: &encoder)
    }
  }
}
