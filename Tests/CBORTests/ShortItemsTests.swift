import CBOR
import Testing

/// Items that are appended in one piece, and texts that are compared where they stand.
@Suite struct ShortItemsTests {
  static let numbers: [Int64] = [
    0, 1, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max, -1, -24, -25, -256,
    -257, -65_537, .min,
  ]

  private func whole(_ body: (inout CBOREncoder) -> Void) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.encode(7 as Int64)
    body(&encoder)
    return encoder.bytes
  }

  @Test(arguments: numbers)
  func `numbers are those of the encoder`(number: Int64) {
    let short = whole { encoder in
      let isAppended = encoder.append { $0.encode(number) }
      #expect(isAppended)
    }
    #expect(short == whole { $0.encode(number) })
  }

  @Test func `booleans and heads are those of the encoder`() {
    let short = whole { encoder in
      let isAppended = encoder.append { items in
        items.encode(true)
        items.encode(false)
        items.head(.map, 1)
        items.head(.array, 300)
      }
      #expect(isAppended)
    }
    let long = whole { encoder in
      encoder.encode(true)
      encoder.encode(false)
      encoder.map(1)
      encoder.array(300)
    }
    #expect(short == long)
  }

  /// Every length around what there is room for, of ASCII and of characters of three bytes.
  @Test(arguments: 0...90)
  func `texts are those of the encoder, or nothing is appended`(length: Int) {
    for text in [
      String(repeating: "x", count: length), String(repeating: "€", count: length / 3) + "é",
    ] {
      for before in 0...3 {
        var isAppended = false
        let short = whole { encoder in
          isAppended = encoder.append { items in
            for _ in 0..<before { items.encode(.max) }
            items.encode(text)
            items.encode(5)
          }
        }
        let long = whole { encoder in
          guard isAppended else { return }
          for _ in 0..<before { encoder.encode(Int64.max) }
          encoder.encode(text)
          encoder.encode(5 as Int64)
        }
        #expect(short == long, "\(text.utf8.count) behind \(before)")
        // The last head has to have room for the longest.
        if 9 * before + 9 + text.utf8.count + 9 <= 64 { #expect(isAppended) }
        if 9 * before + text.utf8.count > 64 { #expect(!isAppended) }
      }
    }
  }

  @Test func `items that do not fit, or are left out, append nothing`() {
    let short = whole { encoder in
      let fits = encoder.append { items in for _ in 0..<8 { items.encode(.max) } }
      let isWhole = encoder.append { items in
        items.encode(1)
        items.leaveOut()
      }
      #expect(!fits && !isWhole)
    }
    #expect(short == [7])
  }

  /// Every two texts of a few, at every length of what is left.
  @Test func `a text is skipped if it is the next item, byte for byte`() throws {
    let texts = [
      "", "a", "b", "ab", "abc", "abd", "abcd", "abce", "bbcd", "abcdefg", "abcdefh", "abcdefgh",
      "abcdefgi", "bbcdefgh", "abcdefghi", "abcdefghj", "abcdefghijklmnop", "abcdefghijklmnoq",
      "abcdefgxijklmnop", "abcdefghijklmnopq", "abcdefghXjklmnopq", "é", "e\u{301}", "€uro-Zeichen",
      String(repeating: "x", count: 23), String(repeating: "x", count: 24),
    ]
    for text in texts {
      for next in texts {
        let bytes = whole { $0.encode(next) }.dropFirst() + [0x05]
        for end in 0...bytes.count {
          Array(bytes.prefix(end)).withUnsafeBytes { bytes in
            var decoder = CBORDecoder(bytes)
            let isSkipped = decoder.textIfNext(text)
            let isThere = text.utf8.elementsEqual(next.utf8) && end > text.utf8.count
            #expect(
              isSkipped == (isThere && text.utf8.count < 24), "\(text) before \(next), \(end)")
            #expect(decoder.offset == (isSkipped ? text.utf8.count + 1 : 0))
          }
        }
      }
    }
  }

  @Test func `what is no text, or has a longer head than it needs, is not skipped`() {
    for bytes: [UInt8] in [
      [0x41, 0x61], [0x78, 1, 0x61], [0x81, 0x61, 0x61], [0x7f, 0x61, 0xff],
    ] {
      bytes.withUnsafeBytes { bytes in
        var decoder = CBORDecoder(bytes)
        let isSkipped = decoder.textIfNext("a")
        #expect(!isSkipped && decoder.offset == 0)
      }
    }
  }
}
