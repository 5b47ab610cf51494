import CBOR
import Testing
import Values

/// The rules of `Protocols/wire.md` on values, patches and digests, checked against this
/// implementation.
@Suite struct ValueVectorTests {
  // MARK: Hashes

  @Test(arguments: VectorFile<HashVector>("siphash.json").vectors)
  func `a hash is that of the vector`(vector: HashVector) throws {
    let expected = try #require(UInt64(vector.hash, radix: 16))
    let seed = HashSeed(vector.seed.flatMap { UInt64($0, radix: 16) } ?? 0)
    switch vector.kind {
    case "sip":
      let input = bytes(try #require(vector.input))
      #expect(input.withUnsafeBytes { Hashing.sip($0, seed: seed) } == expected)
    case "mix":
      let input = try #require(vector.input.flatMap { UInt64($0, radix: 16) })
      #expect(Hashing.mix(input) == expected)
    default:
      switch vector.key {
      case .text(let key)?: #expect(key.hash(seed: seed) == expected)
      case .integer(let key)?: #expect(Int(key).hash(seed: seed) == expected)
      default: Issue.record("No key in \(vector).")
      }
    }
  }

  // MARK: Digests

  @Test(arguments: VectorFile<DigestVector>("digests.json").vectors)
  func `a digest is that of the vector`(vector: DigestVector) throws {
    if let map = vector.value.integerMap {
      try check(map, vector)
    } else {
      try check(vector.value.value, vector)
    }
  }

  private func check(_ value: some Synchronizable, _ vector: DigestVector) throws {
    let seed = HashSeed(try #require(UInt64(vector.seed, radix: 16)))
    #expect(value.digest(seed).description == vector.digest)
    var value = value
    value.adopt(seed: seed)
    #expect(value.digest(seed).description == vector.digest)
    #expect(hex(encoded { value.encode(into: &$0) }) == vector.hex)
    let read = try decode(like: value, bytes(vector.hex), seed)
    #expect(read.isSame(as: value))
    #expect(read.digest(seed).description == vector.digest)
  }

  @Test(arguments: VectorFile<DigestVector>("digests.json").vectors)
  func `every truncation of a value is an error`(vector: DigestVector) {
    let whole = bytes(vector.hex)
    for length in 0..<whole.count {
      #expect(throws: CBORError.self) {
        if vector.value.integerMap != nil {
          _ = try decode(like: TrieMap<Int, Value>(), Array(whole[..<length]))
        } else {
          _ = try decode(like: Value?.none, Array(whole[..<length]))
        }
      }
    }
  }

  // MARK: Values

  @Test(arguments: VectorFile<BadValue>("bad-values.json").vectors)
  func `a bad value is refused`(vector: BadValue) {
    #expect(throws: CBORError.self, "\(vector.reason)") {
      try decode(like: Value.null, bytes(vector.hex))
    }
  }

  // MARK: Patches

  static let patches = VectorFile<PatchVector>("patches.json")

  @Test(arguments: patches.vectors)
  func `a patch has the result that its vector says`(vector: PatchVector) throws {
    let seed = Self.patches.hashSeed
    let (before, after) = vector.values(seed)
    let value = try apply(bytes(vector.patch), to: before, seed)
    #expect(value.isSame(as: after))
    #expect(value.digest(seed) == after.digest(seed))
    #expect(encoded { value.encode(into: &$0) } == encoded { after.encode(into: &$0) })
  }

  @Test(arguments: patches.vectors.filter(\.made))
  func `a difference is the patch of its vector`(vector: PatchVector) {
    let (before, after) = vector.values(Self.patches.hashSeed)
    var encoder = CBOREncoder()
    #expect(after.encodeDifference(from: before, into: &encoder))
    #expect(hex(encoder.bytes) == vector.patch)
  }

  @Test(arguments: patches.vectors)
  func `every truncation of a patch is an error`(vector: PatchVector) {
    let (before, _) = vector.values(Self.patches.hashSeed)
    let whole = bytes(vector.patch)
    for length in 0..<whole.count {
      #expect(throws: CBORError.self) {
        try apply(Array(whole[..<length]), to: before, Self.patches.hashSeed)
      }
    }
  }

  @Test(arguments: VectorFile<BadPatch>("bad-patches.json").vectors)
  func `a bad patch is refused`(vector: BadPatch) {
    var before = vector.before.value
    before.adopt(seed: Self.patches.hashSeed)
    #expect(throws: CBORError.self, "\(vector.reason)") {
      try apply(bytes(vector.patch), to: before, Self.patches.hashSeed)
    }
  }

  @Test(arguments: 0..<8)
  func `damaged patches never crash, and leave an encodable value`(random seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let hashSeed = Self.patches.hashSeed
    let samples = Self.patches.vectors.map { ($0.values(hashSeed).before, bytes($0.patch)) }
    for _ in 0..<25_000 {
      var (before, patch) = samples.randomElement(using: &random)!
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        patch[Int.random(in: patch.indices, using: &random)] ^= UInt8.random(
          in: 1...255, using: &random)
      }
      if Bool.random(using: &random) { before = samples.randomElement(using: &random)!.0 }
      guard let after = try? apply(patch, to: before, hashSeed) else { continue }
      let form = encoded { after.encode(into: &$0) }
      let read = try decode(like: after, form, hashSeed)
      // `#require` would take most of the time.
      if !read.isSame(as: after) || read.digest(hashSeed) != after.digest(hashSeed) {
        Issue.record("\(hex(patch)) on \(before as Any)")
      }
    }
  }
}

struct HashVector: Decodable {
  let kind: String
  let seed: String?
  let input: String?
  let key: JSON?
  let hash: String
}

struct DigestVector: Decodable, CustomStringConvertible {
  let name: String
  let seed: String
  let value: JSON
  let hex: String
  let digest: String

  var description: String { "\(name), seed \(seed)" }
}

struct BadValue: Decodable {
  let hex: String
  let reason: String
}

struct PatchVector: Decodable, CustomStringConvertible {
  let name: String
  let before: JSON
  let patch: String
  let after: JSON
  /// Whether the difference of the two values is this patch; other patches are only applied.
  let made: Bool

  var description: String { name }

  func values(_ seed: HashSeed) -> (before: Value?, after: Value?) {
    var (before, after) = (before.value, after.value)
    before.adopt(seed: seed)
    after.adopt(seed: seed)
    return (before, after)
  }
}

struct BadPatch: Decodable, CustomStringConvertible {
  let name: String
  let before: JSON
  let patch: String
  let reason: String

  var description: String { name }
}

/// Decodes one value, of the type of another.
private func decode<T: Synchronizable>(
  like _: T, _ form: [UInt8], _ seed: HashSeed = .unseeded
) throws(CBORError) -> T {
  try CBORDecoder.read(form) { decoder throws(CBORError) in try T(from: &decoder, seed: seed) }
}

private func apply(
  _ patch: [UInt8], to before: Value?, _ seed: HashSeed
) throws(CBORError) -> Value? {
  try CBORDecoder.read(patch) { decoder throws(CBORError) in
    var value = before
    try value.apply(patch: &decoder, seed: seed)
    return value
  }
}
