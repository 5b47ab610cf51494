import Access
import CBOR
import DaemonCore
import Testing
import Values

@Suite struct ValueFormDigestTests {
  private func digest(
    _ bytes: [UInt8], of kind: Schema.Kind? = .value, in schema: Schema? = nil, seed: HashSeed
  ) throws -> Digest {
    try bytes.withUnsafeBytes {
      try Digest(ofValueForm: $0, of: kind, in: schema, seed: seed)
    }
  }

  @Test func `the digest of a value's bytes is that of the value`() throws {
    var random = RandomViews(seed: 11)
    for round in 0..<500 {
      let seed = HashSeed(UInt64(round))
      let bytes = random.value().bytes
      let value = try CBORDecoder.read(bytes) { decoder throws(CBORError) in
        try Value(from: &decoder, seed: seed)
      }
      #expect(try digest(bytes, seed: seed) == value.digest(seed))
    }
  }

  @Test func `the digest of a typed state's bytes is that of the state`() throws {
    var random = SplitMix64(12)
    var state = First.State()
    let (schema, seed) = (TranslationTests.first, HashSeed(0x5eed))
    for _ in 0..<300 {
      TranslationTests.write(&state, &random)
      let bytes = encoded { state.encode(into: &$0) }
      #expect(try digest(bytes, of: schema.state, in: schema, seed: seed) == state.digest(seed))
      for path in [[1], [2], [3], [4], [5], [5, 3], [5, 3, 1], [9]] as [Path] {
        let part = encoded { state.encode(at: path, into: &$0) }
        let expected = Digest(state.digest(at: path, seed: seed))
        #expect(
          try digest(part, of: schema.kind(at: path), in: schema, seed: seed) == expected,
          "\(path)")
      }
    }
  }

  @Test func `heads longer than needed do not change the digest`() throws {
    let seed = HashSeed(7)
    for (long, short) in [
      ([0x18, 0x01], [0x01]), ([0x39, 0, 0x01], [0x21]), ([0x78, 1, 0x61], [0x61, 0x61]),
      ([0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0], [0xf9, 0x3c, 0]),
      ([0xfa, 0x7f, 0xc0, 0, 1], [0xf9, 0x7e, 0]),
      ([0xb8, 1, 0x61, 0x61, 0x98, 1, 0x18, 1], [0xa1, 0x61, 0x61, 0x81, 0x01]),
    ] as [([UInt8], [UInt8])] {
      #expect(try digest(long, seed: seed) == digest(short, seed: seed))
    }
  }

  @Test(
    arguments: [
      [], [0xc0, 0x01], [0x01, 0x01], [0x82, 0x01], [0xe0], [0xa1, 0xf5, 0x01], [0x9f, 0xff],
    ] as [[UInt8]])
  func `bytes that are no value have no digest`(_ bytes: [UInt8]) {
    #expect(throws: CBORError.self) { try digest(bytes, seed: HashSeed(1)) }
  }
}
