import CBOR
import Testing
import Values

@Suite struct PatchMapTests {
  /// Entries are compared by their first sixteen bytes, and byte by byte where these are equal.
  @Test("entries are sorted by the bytes of their keys, whatever these share")
  func order() {
    var random = SplitMix64(1)
    for shared in 0...40 {
      let keys = (0..<60).map { String(repeating: "k", count: shared) + String($0, radix: 3) }
      let values = Dictionary(
        uniqueKeysWithValues: keys.map { ($0, String(repeating: "v", count: random.below(20))) })
      func encode(_ key: String, into encoder: inout CBOREncoder) {
        encoder.encode(key)
        encoder.encode(values[key] ?? "")
      }
      var encoder = CBOREncoder()
      var map = PatchMap(in: &encoder)
      for key in keys.shuffled(using: &random) {
        let mark = map.open(encoder)
        encode(key, into: &encoder)
        map.close(mark, changed: true, &encoder)
      }
      let isChanged = map.finish(&encoder)
      #expect(isChanged)
      var expected = CBOREncoder()
      expected.map(keys.count)
      let entries = keys.map { key in
        var entry = CBOREncoder()
        encode(key, into: &entry)
        return entry.bytes
      }
      for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
        expected.bytes += entry
      }
      #expect(encoder.bytes == expected.bytes, "\(shared) characters are shared")
    }
  }
}
