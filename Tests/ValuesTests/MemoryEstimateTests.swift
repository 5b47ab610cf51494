import CBOR
import Testing
import Values

/// The memory that values take, estimated from their bytes.
@Suite struct MemoryEstimateTests {
  private func whole(_ bytes: [UInt8]) -> Int? {
    var estimate = MemoryEstimate()
    return bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes)
      do throws(CBORError) { try estimate.addPatch(&decoder) } catch { return nil }
      return decoder.isAtEnd ? estimate.bytes : nil
    }
  }

  private func small(_ bytes: [UInt8]) -> Int? {
    bytes.withUnsafeBytes { MemoryEstimate.ofSmallReplacement($0) }
  }

  private func patch(_ path: [PathKey], _ value: Value, isBare: Bool = false) -> [UInt8] {
    var encoder = CBOREncoder()
    for key in path {
      encoder.map(1)
      switch key {
      case .text(let text): encoder.encode(text)
      case .integer(let number): encoder.encode(number)
      }
    }
    if !isBare { encoder.array(1) }
    value.encode(into: &encoder)
    return encoder.bytes
  }

  @Test func `the estimate of a small replacement equals the full one, without decoding`() {
    let long = String(repeating: "k", count: 14)
    for path in [[], ["a"], ["a", .text(long), ""], [3, "b"]] as [[PathKey]] {
      for value in [0, -1, 23, 24, 1_099_511_627_776, 1.5, true, nil, "", "short", .text(long)]
        as [Value]
      {
        for isBare in [true, false] {
          let bytes = patch(path, value, isBare: isBare)
          #expect(small(bytes) == whole(bytes) && small(bytes) != nil, "\(path) \(value)")
        }
      }
    }
  }

  @Test func `a replacement that may not be small has no quick estimate`() {
    let long = String(repeating: "k", count: 15)
    for bytes in [
      patch(["a"], []), patch(["a"], [:]), patch(["a"], .text(long)), patch([.text(long)], 1),
      patch([-1], 1), patch([24], 1), [0xa0],
      [0xa2, 0x61, 0x61, 0x81, 1, 0x61, 0x62, 0x81, 1], [0x82, 0x80, 0xa0],
    ] as [[UInt8]] {
      #expect(small(bytes) == nil, "\(bytes)")
    }
  }

  @Test(arguments: 0..<20) func `an estimate of any bytes does not trap`(seed: Int) {
    var random = SplitMix64(UInt64(seed))
    for length in 0..<200 {
      var bytes = patch(["a", "bc"], 1)
      for _ in 0..<length % 7 {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
          in: .min ... .max, using: &random)
      }
      bytes.removeLast(length % bytes.count)
      if let estimate = small(bytes), let whole = whole(bytes) { #expect(estimate == whole) }
    }
  }
}
