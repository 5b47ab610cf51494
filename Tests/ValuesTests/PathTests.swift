import CBOR
import Testing
import Values

@Suite struct PathTests {
  @Test(arguments: [
    ("/a", "no", "no (at /a)"),
    ("", "no", "no (at the whole document)"),
    ("", "the object at the root has no member", "the object at the root has no member"),
    ("/a", "the number at /a is no array", "the number at /a is no array"),
    ("/a", "no array is at /a.", "no array is at /a."),
    ("/a", "the number at /a/b is no array", "the number at /a/b is no array (at /a)"),
    ("/a", "the number at /ab, is", "the number at /ab, is (at /a)"),
  ])
  func `a message names its path once`(pointer: String, sentence: String, named: String) throws {
    let path = try #require(Path(pointer: pointer))
    #expect(path.named(behind: sentence) == named)
  }

  @Test(arguments: [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 40, 300])
  func `a patch changes a path whose key it has, byte by byte`(length: Int) {
    let key = String(repeating: "k", count: length)
    #expect(projection(of: key, named: key) != .untouched)
    #expect(projection(of: key, named: key + "k") == .untouched)
    for position in 0..<length {
      var bytes = Array(key.utf8)
      bytes[position] = UInt8(ascii: "x")
      let other = String(decoding: bytes, as: UTF8.self)
      #expect(projection(of: key, named: other) == .untouched, "\(position)")
      bytes.remove(at: position)
      #expect(projection(of: key, named: String(decoding: bytes, as: UTF8.self)) == .untouched)
    }
  }

  /// How a patch of the entry `named` changes the path of `key`.
  private func projection(of key: String, named name: String) -> Projection {
    var encoder = CBOREncoder()
    encoder.map(1)
    encoder.encode(name)
    encoder.encode(UInt64(1))
    return encoder.bytes.withUnsafeBytes { Path([.text(key)]).projection(of: $0) }
  }
}
