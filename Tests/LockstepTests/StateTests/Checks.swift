import Lockstep
import Testing

let seed = HashSeed(0x5eed)

/// SplitMix64: the same seed gives the same numbers.
struct Random {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func below(_ bound: Int) -> Int {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Int(Hashing.mix(state) % UInt64(bound))
  }
}

func bytes(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

func hex(_ bytes: [UInt8]) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

func unhex(_ text: String) -> [UInt8] {
  let digits = text.filter { $0 != " " }
  return stride(from: 0, to: digits.count, by: 2).compactMap {
    UInt8(digits.dropFirst($0).prefix(2), radix: 16)
  }
}

func difference<T: Synchronizable>(from old: T, to new: T) -> [UInt8] {
  var encoder = CBOREncoder()
  let isChanged = new.encodeDifference(from: old, into: &encoder)
  #expect(isChanged == !encoder.bytes.isEmpty)
  return encoder.bytes
}

func decoded<T: Synchronizable>(
  _ type: T.Type, _ bytes: [UInt8]
) throws(CBORError) -> T {
  try CBORDecoder.read(bytes) { decoder throws(CBORError) in
    try T(from: &decoder, seed: seed)
  }
}

func apply<T: Synchronizable>(_ patch: [UInt8], to value: inout T) throws(CBORError) {
  try CBORDecoder.read(patch) { decoder throws(CBORError) in
    try value.apply(patch: &decoder, seed: seed)
  }
}

/// The law that every two values of a type must keep.
func expectLaw<T: Synchronizable>(from old: T, to new: T) throws {
  var (old, new) = (old, new)
  old.adopt(seed: seed)
  new.adopt(seed: seed)
  let patch = difference(from: old, to: new)
  #expect(patch.isEmpty == (bytes(old) == bytes(new)))
  #expect(old.isSame(as: new) == patch.isEmpty)
  var mirror = try decoded(T.self, bytes(old))
  #expect(mirror.isSame(as: old))
  if !patch.isEmpty { try apply(patch, to: &mirror) }
  #expect(mirror.isSame(as: new))
  #expect(bytes(mirror) == bytes(new))
  #expect(mirror.digest(seed: seed) == new.digest(seed: seed))
}
