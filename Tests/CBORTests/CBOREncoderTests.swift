import CBOR
import Testing

private func encoded(_ value: Double) -> [UInt8] {
  var encoder = CBOREncoder()
  encoder.encode(value)
  return encoder.bytes
}

private func decoded(_ input: [UInt8]) throws(CBORError) -> Double {
  try CBORDecoder.read(input) { decoder throws(CBORError) in try decoder.double() }
}

struct FloatingPointTests {
  @Test func `every half survives a round trip and every NaN becomes the canonical NaN`() throws {
    for bits in UInt16.min...UInt16.max {
      let input = [0xf9, UInt8(bits >> 8), UInt8(bits & 0xff)]
      let isNaN = bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0
      let value = try decoded(input)
      guard value.isNaN == isNaN, encoded(value) == (isNaN ? [0xf9, 0x7e, 0x00] : input) else {
        Issue.record("\(hex(input)) became \(value), \(hex(encoded(value)))")
        return
      }
    }
  }

  @Test func `a half has the value that IEEE 754 gives it`() throws {
    for bits in UInt16.min..<0x7c00 {
      let input = [0xf9, UInt8(bits >> 8), UInt8(bits & 0xff)]
      let exponent = Int(bits >> 10)
      let fraction = Double(bits & 0x3ff) / 1024
      let expected =
        exponent == 0
        ? fraction * 0x1p-14
        : Double(sign: .plus, exponent: exponent - 15, significand: 1 + fraction)
      guard try decoded(input) == expected else {
        Issue.record("\(hex(input)) is not \(expected)")
        return
      }
    }
  }

  @Test func `random doubles survive a round trip in the shortest width that holds them`() throws {
    var random = SeededGenerator(seed: 754)
    for _ in 0..<100_000 {
      let value = random.double()
      let output = encoded(value)
      let fitsSingle = value.isNaN || Double(Float(value)) == value
      let back = try decoded(output)
      guard back.bitPattern == value.bitPattern || (back.isNaN && value.isNaN),
        output.count <= (fitsSingle ? 5 : 9), fitsSingle || output.count == 9
      else {
        Issue.record("\(value) became \(hex(output))")
        return
      }
    }
  }

  @Test(arguments: [
    (0x1p-24, "f90001"), (0x1p-25, "fa33000000"), (0x1.8p-24, "fa33c00000"),
    (0x1.ff8p-15, "f903ff"), (0x1.ffcp-15, "fa387fe000"), (0x1p-14, "f90400"), (65504, "f97bff"),
    (65505, "fa477fe100"), (65536, "fa47800000"), (-0x1p-24, "f98001"),
    (Double(Float.leastNonzeroMagnitude), "fa00000001"),
    (Double(Float.greatestFiniteMagnitude), "fa7f7fffff"),
    (.leastNonzeroMagnitude, "fb0000000000000001"),
    (Double(Float.greatestFiniteMagnitude).nextUp, "fb47efffffe0000001"),
  ])
  func `numbers at the limits of a width are encoded in the right one`(
    value: Double, expected: String
  ) {
    #expect(hex(encoded(value)) == expected)
  }

  @Test(arguments: [
    "f97e01", "f9fe00", "f97c01", "fa7f800001", "faffc00000", "fb7ff0000000000001",
    "fbffffffffffffffff",
  ])
  func `every NaN is encoded as the canonical quiet NaN`(hex input: String) throws {
    #expect(hex(encoded(try decoded(bytes(input)))) == "f97e00")
  }
}

struct InsertHeadTests {
  @Test(arguments: [UInt64(0), 23, 24, 255, 256, 65_535, 65_536, 1 << 32, .max])
  func `a head inserted later has the same bytes as one appended first`(argument: UInt64) {
    for major in [MajorType.array, .map, .tag, .bytes] {
      var expected = CBOREncoder()
      expected.encode("before")
      let start = expected.bytes.count
      expected.head(major, argument)
      expected.encode(1.1)

      var encoder = CBOREncoder(reservingCapacity: 64)
      encoder.encode("before")
      encoder.encode(1.1)
      encoder.insertHead(major, argument, at: start)
      #expect(encoder.bytes == expected.bytes)
    }
  }

  @Test func `encoded items are spliced in unchanged`() {
    var inner = CBOREncoder()
    inner.encode([1, 2].count)
    var outer = CBOREncoder()
    outer.array(3)
    outer.raw(inner.bytes)
    inner.bytes.withUnsafeBytes { outer.raw($0) }
    outer.encode(bytes: [])
    #expect(hex(outer.bytes) == "83020240")
  }
}
