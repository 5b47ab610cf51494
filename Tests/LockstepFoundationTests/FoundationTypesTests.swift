import CBOR
import FoundationEssentials
import LockstepFoundation
import Testing
import Values

private func bytes(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

private func decoded<T: Synchronizable>(
  _ type: T.Type, _ bytes: [UInt8]
) throws(CBORError) -> T {
  try CBORDecoder.read(bytes) { decoder throws(CBORError) in
    try T(from: &decoder, seed: HashSeed(1))
  }
}

@Suite struct FoundationTypesTests {
  @Test func `a date is encoded in microseconds, rounded to the nearest`() throws {
    #expect(bytes(Date(timeIntervalSince1970: 0)) == [0x00])
    #expect(bytes(Date(timeIntervalSince1970: 0.000_023)) == [0x17])
    #expect(bytes(Date(timeIntervalSince1970: -0.000_001)) == [0x20])
    #expect(bytes(Date(timeIntervalSince1970: 1e9)) == bytes(1_000_000_000_000_000))
    #expect(
      try decoded(Date.self, bytes(1_700_000_000_123_456)).timeIntervalSince1970
        == 1_700_000_000.123456)
  }

  @Test func `of data that is too long to be small nothing is encoded`() {
    let data = Data(repeating: 1, count: 1000)
    for (limit, isOver) in [(900, true), (1003, false)] {
      var encoder = CBOREncoder(upTo: limit)
      data.encode(into: &encoder)
      #expect(encoder.isOver == isOver)
      #expect(encoder.bytes == (isOver ? [] : bytes(data)))
    }
  }

  @Test func `a decoded date is encoded to the same bytes, near and far`() throws {
    var generator = SystemRandomNumberGenerator()
    let ranges: [ClosedRange<Double>] = [-10...10, -3e9...3e9, -1e11...1e11, -2e13...2e13]
    for range in ranges {
      for _ in 0..<2_000 {
        let date = Date(timeIntervalSinceReferenceDate: .random(in: range, using: &generator))
        let mirror = try decoded(Date.self, bytes(date))
        #expect(bytes(mirror) == bytes(date), "\(date.timeIntervalSinceReferenceDate)")
        #expect(mirror.isSame(as: date))
      }
    }
  }

  @Test func `dates out of range survive a round trip`() throws {
    for seconds in [Double.infinity, -.infinity, .nan, 1e300] {
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      #expect(try bytes(decoded(Date.self, bytes(date))) == bytes(date))
    }
    for edge in [Int64.min, .max] { _ = bytes(try decoded(Date.self, bytes(edge))) }
    let near = Date(timeIntervalSince1970: 1e-7)
    #expect(near.isSame(as: Date(timeIntervalSince1970: 0)))
  }

  @Test func `a UUID is encoded as its text in lower case`() throws {
    let id = try #require(UUID(uuidString: "0A000000-0000-4000-8000-00000000000B"))
    let text = "0a000000-0000-4000-8000-00000000000b"
    #expect(bytes(id) == bytes(text))
    #expect(id.digest(seed: HashSeed(3)) == text.digest(seed: HashSeed(3)))
    #expect(id.hash(seed: HashSeed(3)) == text.hash(seed: HashSeed(3)))
    #expect(try decoded(UUID.self, bytes(id.uuidString)) == id)
    #expect(throws: CBORError(.notAllowed("a text that is no UUID"), at: 0)) {
      try decoded(UUID.self, bytes("0a"))
    }
    #expect(UUID(pathKey: id.pathKey) == id)
    #expect(UUID(pathKey: .text(id.uuidString)) == nil)
    var map: SyncMap<UUID, Int> = [id: 1]
    map.adopt(seed: HashSeed(4))
    #expect(map[id] == 1)
    #expect(try decoded(SyncMap<UUID, Int>.self, bytes(map)) == map)
  }

  @Test func `data is encoded as a byte string`() throws {
    let data = Data([1, 2, 3])
    #expect(bytes(data) == [0x43, 1, 2, 3])
    #expect(try decoded(Data.self, bytes(data)) == data)
    var encoder = CBOREncoder()
    #expect(!data.encodeDifference(from: Data([1, 2, 3]), into: &encoder))
    #expect(data.encodeDifference(from: Data(), into: &encoder))
    #expect(encoder.bytes == [0x43, 1, 2, 3])
  }
}
