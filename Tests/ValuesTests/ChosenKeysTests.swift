import Testing

@testable import Values

/// Every client knows the seed of the hashes. Keys that a client chooses with it must not slow down
/// the others.
@Suite struct ChosenKeysTests {
  let seed = HashSeed(0x0123_4567_89ab_cdef)

  /// The number with this hash: `Int.hash(seed:)` is a bijection.
  func key(hashing hash: UInt64) -> Int {
    func unshift(_ value: UInt64, _ shift: UInt64) -> UInt64 {
      var result = value
      for _ in 0..<(64 / shift) { result = value ^ (result >> shift) }
      return result
    }
    func inverse(_ odd: UInt64) -> UInt64 {
      var result = odd
      for _ in 0..<6 { result = result &* (2 &- odd &* result) }
      return result
    }
    var z = unshift(hash, 31) &* inverse(0x94d0_49bb_1331_11eb)
    z = unshift(z, 27) &* inverse(0xbf58_476d_1ce4_e5b9)
    z = unshift(z, 30) &- Hashing.mix(seed.rawValue)
    return Int(bitPattern: UInt(z))
  }

  /// The longest run of occupied places in the index of a map's notes, which a search may have to
  /// scan.
  func longestRun(_ map: SyncMap<Int, Int>) throws -> Int {
    let table = try #require(map.notes).table.pointee
    let index = try #require(table.index)
    var (longest, run) = (0, 0)
    for place in 0..<(2 * table.capacity) {
      run = index[place] == 0 ? 0 : run + 1
      longest = max(longest, run)
    }
    return longest
  }

  /// Hashes with equal low bits, with equal high bits, and that differ only in some bits in the
  /// middle.
  @Test(arguments: [32, 0, 20]) func `chosen keys do not cluster in a map's notes`(
    shift: UInt64
  ) throws {
    var map = SyncMap<Int, Int>(seed: seed)
    for number in 0..<(20_000 as UInt64) {
      let key = key(hashing: number << shift)
      #expect(key.hash(seed: seed) == number << shift)
      map[key] = Int(number)
    }
    #expect(map.count == 20_000)
    #expect(try longestRun(map) < 400)
  }
}
