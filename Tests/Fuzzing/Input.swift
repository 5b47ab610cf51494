import CBOR
import Values

/// The bytes of one run, consumed from the front.
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

  /// A chunk: a byte with its length, then that many bytes, or those that remain.
  mutating func chunk() -> [UInt8] {
    let count = min(Int(byte()), rest.count)
    defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count)) }
    return [UInt8](rest.prefix(count))
  }

  /// Decodes from the front. Returns nil, with the input unchanged, on an error.
  mutating func decode<T>(_ body: (inout CBORDecoder) throws -> T) -> T? {
    var decoder = CBORDecoder(rest)
    guard let value = try? body(&decoder) else { return nil }
    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(decoder.offset))
    return value
  }

  mutating func value() -> Value? { decode { try Value(from: &$0, seed: testSeed) } }
}

/// The seed with which collections hash, and another one. The first is that of the vectors, so that
/// iteration orders equal ours.
let testSeed = HashSeed(0x0123_4567_89ab_cdef)
let otherSeed = HashSeed(0xfeed_0000_0000_0001)

/// Deep enough for any value of the default depth, and for any patch of it.
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

/// Decodes a value that we encoded, which therefore must decode.
func decodedValue(_ bytes: [UInt8], seed: HashSeed = testSeed) -> Value {
  do {
    return try CBORDecoder.read(bytes, depth: ampleDepth) { decoder throws(CBORError) in
      try Value(from: &decoder, seed: seed)
    }
  } catch {
    fatalError("Broken: what was encoded decodes: \(error) in \(hex(bytes))")
  }
}

/// Requires that a value survives a round trip, and that its digest, which collections maintain
/// while they change, equals the digest of the same value built from its bytes.
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
