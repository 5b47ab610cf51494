import CBOR
import Values

/// The bytes of one run, read from the front.
struct Input {
  var rest: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  var isEmpty: Bool { rest.isEmpty }
  var bytes: [UInt8] { [UInt8](rest) }

  /// The next byte; 0 at the end.
  mutating func byte() -> UInt8 {
    guard let first = rest.first else { return 0 }
    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
    return first
  }

  /// As many bytes as the next one says, or those that are left.
  mutating func chunk() -> [UInt8] {
    let count = min(Int(byte()), rest.count)
    defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count)) }
    return [UInt8](rest.prefix(count))
  }

  /// Decode from the front. Nil, with the input unchanged, when that fails.
  mutating func decode<T>(_ body: (inout CBORDecoder) throws -> T) -> T? {
    var decoder = CBORDecoder(rest)
    guard let value = try? body(&decoder) else { return nil }
    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(decoder.offset))
    return value
  }

  mutating func value() -> Value? { decode { try Value(from: &$0, seed: testSeed) } }
}

/// What collections hash with, and another seed. That of the vectors, so that their order is ours.
let testSeed = HashSeed(0x0123_4567_89ab_cdef)
let otherSeed = HashSeed(0xfeed_0000_0000_0001)

/// Deep enough for whatever a value of the default depth can become or be patched by.
let ampleDepth = 600

func encoded(_ body: (inout CBOREncoder) -> Void) -> [UInt8] {
  var encoder = CBOREncoder()
  body(&encoder)
  return encoder.bytes
}

func hex(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}

/// The value that was encoded: ours, so it must decode.
func decodedValue(_ bytes: [UInt8], seed: HashSeed = testSeed) -> Value {
  do {
    return try CBORDecoder.read(bytes, depth: ampleDepth) { decoder throws(CBORError) in
      try Value(from: &decoder, seed: seed)
    }
  } catch {
    fatalError("Broken: what was encoded decodes: \(error) in \(hex(bytes))")
  }
}

/// Require that a value travels, and that its digest, which collections remember while they change,
/// is that of the same value made anew.
func requireSound(_ value: Value, _ what: @autoclosure () -> String) {
  let bytes = encoded { value.encode(into: &$0) }
  let again = decodedValue(bytes)
  require(again.isSame(as: value) && value.isSame(as: again), "\(what()): the same decoded")
  require(encoded { again.encode(into: &$0) } == bytes, "\(what()): the same bytes decoded")
  require(again.digest(testSeed) == value.digest(testSeed), "\(what()): the digest of its bytes")
}

extension Value {
  func adopting(_ seed: HashSeed) -> Value {
    var value = self
    value.adopt(seed: seed)
    return value
  }
}
