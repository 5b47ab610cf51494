import CBOR

/// SplitMix64: the same seed gives the same run on every machine.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}

extension SeededGenerator {
  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

  /// A number with a uniformly random width, so that every head length is equally likely.
  mutating func number() -> UInt64 { next() >> UInt64(below(64)) }

  mutating func bytes(upTo count: Int) -> [UInt8] {
    (0..<below(count + 1)).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  mutating func text(upTo count: Int) -> String {
    let ranges: [ClosedRange<UInt32>] = [
      0...0x7f, 0x80...0x7ff, 0x800...0xd7ff, 0x1_0000...0x10_ffff,
    ]
    var text = ""
    for _ in 0..<below(count + 1) {
      let range = below(2) == 0 ? ranges[0] : ranges[below(4)]
      text.unicodeScalars.append(Unicode.Scalar(UInt32.random(in: range, using: &self))!)
    }
    return text
  }

  /// A number that is exactly a half, a single or a double, with equal probability.
  mutating func double() -> Double {
    let double =
      switch below(3) {
      case 0: HalfFloat.value(UInt16.random(in: 0...0xffff, using: &self))
      case 1: Double(Float(bitPattern: UInt32.random(in: 0...UInt32.max, using: &self)))
      default: Double(bitPattern: next())
      }
    return double.isNaN ? .nan : double
  }

  /// An item that other decoders read too: map keys are distinct integers and strings, and no tag
  /// has a meaning that would turn the content into something else.
  mutating func item(depth: Int = 4) -> CBORItem {
    switch below(depth > 0 ? 13 : 9) {
    case 0: return .unsigned(number())
    case 1: return .negative(number())
    case 2: return .bytes(bytes(upTo: 40))
    case 3: return .text(text(upTo: 40))
    case 4: return .bool(below(2) == 0)
    case 5: return .null
    case 6: return .undefined
    case 7: return .simple(UInt8(below(2) == 0 ? below(20) : 32 + below(224)))
    case 8: return .double(double())
    case 9, 10: return .array((0..<below(6)).map { _ in item(depth: depth - 1) })
    case 11: return .map(pairs(depth: depth))
    default: return .tagged([6, 200, 70_000, 1 << 40, .max][below(5)], item(depth: depth - 1))
    }
  }

  private mutating func pairs(depth: Int) -> [CBORItem.Pair] {
    var keys: Set<[UInt8]> = []
    var pairs: [CBORItem.Pair] = []
    for _ in 0..<below(6) {
      let key: CBORItem =
        switch below(4) {
        case 0: .unsigned(number())
        case 1: .negative(number())
        case 2: .bytes(bytes(upTo: 5))
        default: .text(text(upTo: 5))
        }
      if keys.insert(key.encoded).inserted { pairs.append(.init(key, item(depth: depth - 1))) }
    }
    return pairs
  }
}

extension CBORItem {
  var encoded: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }
}
