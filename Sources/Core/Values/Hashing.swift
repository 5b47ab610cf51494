/// The seed of an epoch. Every persistent map of one state hashes its keys with it, so shape and
/// iteration order follow from contents and seed alone, in every process that knows the seed.
///
/// It protects the shape against accidental and blind attacks. Every client receives it, so it is
/// not a secret.
@frozen
public struct HashSeed: Hashable, Sendable {
  public var rawValue: UInt64

  @inlinable
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// The seed of a collection until it becomes part of a state (`Synchronizable.adopt`).
  public static let unseeded = HashSeed(0)
}

/// The hash functions of `Protocols/wire.md`, section "Digests".
public enum Hashing {
  /// SipHash-1-3 of some bytes, keyed with the seed and its complement. O(n).
  ///
  /// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012); one compression and
  /// three finalisation rounds, as in Swift's own hasher and Rust's.
  @inlinable
  public static func sip(_ bytes: UnsafeRawBufferPointer, seed: HashSeed) -> UInt64 {
    var v0 = seed.rawValue ^ 0x736f_6d65_7073_6575
    var v1 = ~seed.rawValue ^ 0x646f_7261_6e64_6f6d
    var v2 = seed.rawValue ^ 0x6c79_6765_6e65_7261
    var v3 = ~seed.rawValue ^ 0x7465_6462_7974_6573

    @inline(__always)
    func round() {
      v0 &+= v1
      v1 = v1 << 13 | v1 >> 51
      v1 ^= v0
      v0 = v0 << 32 | v0 >> 32
      v2 &+= v3
      v3 = v3 << 16 | v3 >> 48
      v3 ^= v2
      v0 &+= v3
      v3 = v3 << 21 | v3 >> 43
      v3 ^= v0
      v2 &+= v1
      v1 = v1 << 17 | v1 >> 47
      v1 ^= v2
      v2 = v2 << 32 | v2 >> 32
    }

    let count = bytes.count
    var index = 0
    while index &+ 8 <= count {
      let word = UInt64(
        littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      v3 ^= word
      round()
      v0 ^= word
      index &+= 8
    }
    let last = UInt64(truncatingIfNeeded: count) << 56 | rest(of: bytes, from: index)
    v3 ^= last
    round()
    v0 ^= last
    v2 ^= 0xff
    round()
    round()
    round()
    return v0 ^ v1 ^ v2 ^ v3
  }

  /// The last bytes, fewer than eight, as a number in little-endian order: in two loads that overlap where there
  /// are four, for keys are short.
  @inlinable
  @inline(__always)
  static func rest(of bytes: UnsafeRawBufferPointer, from start: Int) -> UInt64 {
    let count = bytes.count &- start
    if count >= 4 {
      let first = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self))
      let last = UInt32(
        littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count &- 4, as: UInt32.self))
      return UInt64(first) | UInt64(last) << UInt64(truncatingIfNeeded: 8 &* (count &- 4))
    }
    var rest: UInt64 = 0
    var shift: UInt64 = 0
    for index in start..<bytes.count {
      rest |= UInt64(bytes[index]) << shift
      shift &+= 8
    }
    return rest
  }

  /// A bijection of 64 bits in which every input bit reaches every output bit.
  ///
  /// Source: the finaliser of SplitMix64 (Steele, Lea and Flood 2014, with Stafford's constants).
  @inlinable
  public static func mix(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// The contribution of one entry to the digest sum of its map or struct.
  @inlinable
  public static func entry(keyHash: UInt64, digest: UInt64) -> UInt64 {
    mix(keyHash &+ mix(digest))
  }

  /// The digest of a map or struct, from the sum of its entries modulo 2^64.
  @inlinable
  public static func map(sum: UInt64, count: Int) -> UInt64 {
    mix((sum ^ 0xa5a5_a5a5_a5a5_a5a5) &+ UInt64(truncatingIfNeeded: count))
  }

  /// The base of the polynomial over an array's elements.
  public static let arrayBase: UInt64 = 0x9e37_79b9_7f4a_7c15

  /// The digest of an array, from the sum of digest(i) * base^(count - 1 - i) modulo 2^64.
  @inlinable
  public static func array(polynomial: UInt64, count: Int) -> UInt64 {
    mix((polynomial ^ 0x5a5a_5a5a_5a5a_5a5a) &+ UInt64(truncatingIfNeeded: count))
  }
}

/// The hash of a whole value: equal values have equal digests, in every process of an epoch.
///
/// It finds divergence, not forgery: 64 bits, and the seed is known to every peer.
@frozen
public struct Digest: Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt64

  @inlinable
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// Sixteen hexadecimal digits.
  public var description: String {
    let digits = String(rawValue, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
