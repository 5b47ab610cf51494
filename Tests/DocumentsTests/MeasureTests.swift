import CBOR
import Documents
import Testing
import Values

/// A document is measured without encoding it, with the result that its encoding would give.
@Suite struct MeasureTests {
  private func measureOfEncoding(_ value: Value) throws -> StateMeasure {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    var estimate = MemoryEstimate()
    // Not `throws(CBORError)`: Swift 6.3.1 crashes while it emits code for such a closure here.
    try encoder.bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes, depth: .max)
      try estimate.addValue(&decoder)
    }
    return StateMeasure(encoded: encoder.bytes.count, memory: estimate.bytes)
  }

  @Test(arguments: 0..<200) func `a document measures the same as its encoding`(seed: Int) throws {
    var random = SeededGenerator(seed)
    let value = random.value(depth: 5)
    #expect(StateMeasure(of: Document(value)) == (try measureOfEncoding(value)), "\(value)")
  }

  @Test func `so does a document with long heads`() throws {
    for count in [0, 14, 15, 16, 23, 24, 255, 256, 65_536] {
      let text = Value.text(String(repeating: "é", count: count))
      let array = Value.array(TreeArray(repeatElement(.integer(Int64(count)), count: count)))
      let object = Value.object(
        TrieMap(uniqueKeysWithValues: (0..<count).map { ("key \($0)", Value.integer(1)) }))
      for value in [text, array, object] {
        #expect(StateMeasure(of: Document(value)) == (try measureOfEncoding(value)), "\(count)")
      }
    }
  }
}
