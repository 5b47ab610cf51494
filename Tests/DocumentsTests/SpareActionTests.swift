import CBOR
import Documents
import Lockstep
import Testing
import Values

/// Actions that are decoded into the memory of others, which are not used any more.
@Suite struct SpareActionTests {
  private func encoded(_ action: DocumentAction) -> [UInt8] {
    var encoder = CBOREncoder()
    action.encode(into: &encoder)
    return encoder.bytes
  }

  private func decode(
    _ bytes: [UInt8], reusing spare: inout DocumentAction?
  ) throws -> DocumentAction {
    try bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes)
      return try DocumentAction(from: &decoder, seed: testSeed, reusing: &spare)
    }
  }

  private func decode(_ bytes: [UInt8]) throws -> DocumentAction {
    var none: DocumentAction?
    return try decode(bytes, reusing: &none)
  }

  @Test func `an action decoded in the place of any other is what it is by itself`() throws {
    for seed in 0..<3000 {
      var random = SeededGenerator(seed)
      let root = random.value(depth: 3)
      let (bytes, former) = (
        encoded(random.action(in: root)), try decode(encoded(random.action(in: root)))
      )
      // One that something else has, too, and one that has its memory to itself.
      var (shared, own): (DocumentAction?, DocumentAction?) = (
        former, try decode(encoded(former))
      )
      let (before, expected) = (encoded(former), try encoded(decode(bytes)))
      #expect(try encoded(decode(bytes, reusing: &shared)) == expected, "seed \(seed)")
      #expect(try encoded(decode(bytes, reusing: &own)) == expected, "seed \(seed)")
      // What has a copy of the former one goes on having it.
      #expect(encoded(former) == before, "seed \(seed)")
    }
  }

  @Test func `a path has the memory of one with as many keys, unless that is shared`() throws {
    func address(_ path: Path) -> UnsafePointer<PathKey>? {
      path.keys.withUnsafeBufferPointer(\.baseAddress)
    }
    func decode(_ new: Path, into path: inout Path) throws {
      var encoder = CBOREncoder()
      new.encode(into: &encoder)
      try encoder.bytes.withUnsafeBytes { bytes in
        var decoder = CBORDecoder(bytes)
        try path.decode(from: &decoder)
      }
      #expect(path == new)
    }
    var path: Path = ["items", "a"]
    let first = address(path)
    try decode(["items", "b"], into: &path)
    #expect(address(path) == first)
    let kept = path
    try decode(["items", 3], into: &path)
    #expect(address(path) != first && kept == ["items", "b"])
    try decode(["items"], into: &path)
    try decode([], into: &path)
    try decode(["items", "c", "d"], into: &path)
  }

  @Test func `bytes that are no action leave nothing behind`() throws {
    var spare: DocumentAction? = .increment(["a", "b"], by: 1)
    // [3, ["x", true]]
    #expect(throws: CBORError.self) {
      try decode([0x82, 0x03, 0x82, 0x61, 0x78, 0xf5], reusing: &spare)
    }
    let action = try decode([0x82, 0x03, 0x82, 0x61, 0x78, 0x61, 0x79], reusing: &spare)
    #expect(action == .increment(["x", "y"], by: 1))
  }
}
