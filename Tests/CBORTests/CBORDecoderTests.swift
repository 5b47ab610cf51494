import CBOR
import Testing

/// Reads the bytes with `body` and returns the error it throws, or nil.
private func failure<R>(
  _ hex: String, depth: Int = CBORDecoder.defaultDepth,
  _ body: (inout CBORDecoder) throws(CBORError) -> R
) -> CBORError? {
  do throws(CBORError) {
    _ = try CBORDecoder.read(bytes(hex), depth: depth, body)
    return nil
  } catch {
    return error
  }
}

private func integer(_ hex: String) throws(CBORError) -> Int64 {
  try CBORDecoder.read(bytes(hex)) { decoder throws(CBORError) in try decoder.integer() }
}

private func unsigned<T: FixedWidthInteger>(_ hex: String, _ type: T.Type) throws(CBORError) -> T {
  try CBORDecoder.read(bytes(hex)) { decoder throws(CBORError) in try decoder.unsigned(as: type) }
}

struct IntegerTests {
  @Test func `the edges of every head length read and encode`() throws {
    let edges: [UInt64] = [0, 23, 24, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 1 << 32, .max]
    let lengths = [1, 1, 2, 2, 3, 3, 5, 5, 9, 9]
    for (value, length) in zip(edges, lengths) {
      var encoder = CBOREncoder()
      encoder.encode(value)
      #expect(encoder.bytes.count == length)
      #expect(CBORDecoder.headLength(value) == length)
      #expect(try unsigned(hex(encoder.bytes), UInt64.self) == value)
    }
  }

  @Test func `signed integers reach both ends of 64 bits and no further`() throws {
    for value in [0, -1, 23, -24, -25, 255, -256, -257, Int64.max, Int64.min] {
      var encoder = CBOREncoder()
      encoder.encode(value)
      #expect(try integer(hex(encoder.bytes)) == value)
    }
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) { try integer("1b8000000000000000") }
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) { try integer("3b8000000000000000") }
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) { try integer("3bffffffffffffffff") }
  }

  @Test func `an unsigned integer must fit the type asked for`() throws {
    #expect(try unsigned("18ff", UInt8.self) == 255)
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) { try unsigned("190100", UInt8.self) }
    #expect(try unsigned("187f", Int8.self) == 127)
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) { try unsigned("1880", Int8.self) }
    #expect(try unsigned("1b7fffffffffffffff", Int.self) == .max)
    #expect(throws: CBORError(.numberOutOfRange, at: 0)) {
      try unsigned("1b8000000000000000", Int.self)
    }
  }

  @Test(arguments: ["17", "1817", "190017", "1a00000017", "1b0000000000000017"])
  func `heads longer than needed are accepted`(hex: String) throws {
    #expect(try integer(hex) == 23)
  }

  @Test func `an error has the offset of the faulty item`() {
    let error = failure("83011903e8190100") { decoder throws(CBORError) in
      _ = try decoder.array()
      _ = try decoder.unsigned()
      _ = try decoder.unsigned()
      _ = try decoder.unsigned(as: UInt8.self)
    }
    #expect(error == CBORError(.numberOutOfRange, at: 5))
  }
}

struct MismatchTests {
  /// One item of every kind, and what `nextName` calls it.
  private static let kinds = [
    ("01", "an unsigned integer"), ("20", "a negative integer"), ("4100", "a byte string"),
    ("6161", "a text string"), ("8100", "an array"), ("a10000", "a map"), ("c000", "a tag"),
    ("e0", "a simple value"), ("f820", "a simple value"), ("f5", "a boolean"), ("f6", "null"),
    ("f7", "undefined"), ("f93c00", "a floating-point number"), ("ff", "a break"), ("", "the end"),
  ]

  private func check<R>(
    _ expected: String, accepts: Set<String>,
    _ body: (inout CBORDecoder) throws(CBORError) -> R
  ) {
    for (hex, name) in Self.kinds where !accepts.contains(name) {
      let found = failure(hex, body)
      if name == "the end" {
        #expect(found == CBORError(.truncated, at: 0))
      } else {
        #expect(found == CBORError(.mismatch(expected: expected, found: name), at: 0))
      }
    }
  }

  @Test func `every reader refuses every other kind and names both`() {
    check("an unsigned integer", accepts: ["an unsigned integer"]) { decoder throws(CBORError) in
      try decoder.unsigned()
    }
    check("an integer", accepts: ["an unsigned integer", "a negative integer"]) {
      decoder throws(CBORError) in try decoder.integer()
    }
    check("a text string", accepts: ["a text string"]) { decoder throws(CBORError) in
      try decoder.text()
    }
    check("a byte string", accepts: ["a byte string"]) { decoder throws(CBORError) in
      try decoder.byteString()
    }
    check("an array", accepts: ["an array"]) { decoder throws(CBORError) in try decoder.array() }
    check("a map", accepts: ["a map"]) { decoder throws(CBORError) in try decoder.map() }
    check("a tag", accepts: ["a tag"]) { decoder throws(CBORError) in try decoder.tag() }
    check("a boolean", accepts: ["a boolean"]) { decoder throws(CBORError) in try decoder.bool() }
    check("a floating-point number", accepts: ["a floating-point number"]) {
      decoder throws(CBORError) in try decoder.double()
    }
  }

  @Test func `null and undefined are read only when they are the next item`() throws {
    try CBORDecoder.read(bytes("f6f7f5")) { decoder throws(CBORError) in
      let early = [decoder.undefinedIfNext(), decoder.nullIfNext()]
      #expect(early == [false, true])
      let late = [decoder.nullIfNext(), decoder.undefinedIfNext()]
      #expect(late == [false, true])
      let last = try decoder.bool()
      #expect(last && decoder.isAtEnd && decoder.remaining == 0)
      let beyond = [decoder.nullIfNext(), decoder.undefinedIfNext()]
      #expect(beyond == [false, false])
    }
  }

  @Test func `bytes after the last item are an error`() {
    #expect(throws: CBORError(.trailingBytes(2), at: 1)) { try CBORItem(bytes("010203")) }
  }

  @Test func `the readers for one type refuse indefinite lengths`() {
    let notAllowed = CBORError(.notAllowed("an indefinite length is not allowed here"), at: 0)
    #expect(failure("5fff") { decoder throws(CBORError) in try decoder.byteString() } == notAllowed)
    #expect(failure("7fff") { decoder throws(CBORError) in try decoder.text() } == notAllowed)
    #expect(failure("9fff") { decoder throws(CBORError) in try decoder.array() } == notAllowed)
    #expect(failure("bfff") { decoder throws(CBORError) in try decoder.map() } == notAllowed)
  }

  @Test func `an error that the caller throws is rethrown unchanged`() {
    enum Failure: Error, Equatable {
      case mine
      case format(CBORError)
    }
    #expect(throws: Failure.mine) {
      try CBORDecoder.read([0x01], mapError: Failure.format) { _ throws(Failure) in
        throw Failure.mine
      }
    }
    #expect(throws: Failure.format(CBORError(.trailingBytes(1), at: 0))) {
      try CBORDecoder.read([0x01], mapError: Failure.format) { _ throws(Failure) in }
    }
  }
}

struct DepthTests {
  /// `levels` containers of one kind around a zero. A map is nested in its value.
  private func nested(_ levels: Int, in opening: String, closing: String = "") -> [UInt8] {
    bytes(
      String(repeating: opening, count: levels) + "00" + String(repeating: closing, count: levels))
  }

  @Test(arguments: [
    ("81", ""), ("a100", ""), ("c1", ""), ("9f", "ff"), ("bf00", "ff"), ("d9d9f7", ""),
  ])
  func `nesting is allowed up to the limit and not one level more`(
    opening: String, closing: String
  ) throws {
    for limit in [0, 1, 2, 17, CBORDecoder.defaultDepth] {
      let allowed = nested(limit, in: opening, closing: closing)
      _ = try CBORItem(allowed, depth: limit)
      try CBORDecoder.read(allowed, depth: limit) { decoder throws(CBORError) in
        try decoder.skip()
      }

      let tooDeep = nested(limit + 1, in: opening, closing: closing)
      let error = CBORError(.nestingTooDeep(limit: limit), at: limit * opening.utf8.count / 2)
      #expect(throws: error) { try CBORItem(tooDeep, depth: limit) }
      #expect(throws: error) {
        try CBORDecoder.read(tooDeep, depth: limit) { decoder throws(CBORError) in
          try decoder.skip()
        }
      }
    }
  }

  @Test func `a million open levels are an error and not a stack overflow`() {
    for opening in ["81", "a100", "c1", "9f", "bf00", "9f81", "82009f"] {
      let input = bytes(String(repeating: opening, count: 1_000_000))
      let error = #expect(throws: CBORError.self) { try CBORItem(input) }
      #expect(error?.kind == .nestingTooDeep(limit: CBORDecoder.defaultDepth))
      #expect(skipError(input) == error)
    }
  }

  @Test func `closing a container gives its level of nesting back`() throws {
    let siblings = bytes("83" + "8100" + "a10000" + "c18100")
    #expect(throws: CBORError(.nestingTooDeep(limit: 2), at: 7)) {
      try CBORItem(siblings, depth: 2)
    }
    _ = try CBORItem(siblings, depth: 3)
    try CBORDecoder.read(bytes("81008100"), depth: 1) { decoder throws(CBORError) in
      for _ in 0..<2 {
        let values = [UInt64(try decoder.array()), try decoder.unsigned()]
        #expect(values == [1, 0])
        decoder.close()
      }
    }
  }
}

struct HostileLengthTests {
  private static let lengths: [UInt64] = [
    2, 0x1_0000_0000, 0x4000_0000_0000_0000, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fff7, .max,
  ]

  @Test(arguments: lengths)
  func `a length that exceeds the input is refused before memory is reserved`(
    length: UInt64
  ) {
    for major in [MajorType.bytes, .text, .array, .map] {
      var encoder = CBOREncoder()
      encoder.head(major, length)
      let input = encoder.bytes + [0x00]
      let error = CBORError(.lengthBeyondInput(length), at: 0)
      #expect(throws: error) { try CBORItem(input) }
      #expect(skipError(input) == error)
      #expect(
        failure(hex(input)) { decoder throws(CBORError) in
          switch major {
          case .bytes: _ = try decoder.byteString()
          case .text: _ = try decoder.text()
          case .array: _ = try decoder.array()
          case .map: _ = try decoder.map()
          case .unsigned, .negative, .tag, .simple: break
          }
        } == error)
    }
  }

  @Test func `a map needs at least two bytes of input for each pair`() {
    #expect(throws: CBORError(.lengthBeyondInput(2), at: 0)) { try CBORItem(bytes("a2000000")) }
    #expect(throws: Never.self) { try CBORItem(bytes("a200000000")) }
  }

  @Test(arguments: [0, 1, 5, 16, 17, 1000])
  func `a decoded collection reserves little more than its entries need`(count: Int) throws {
    let zeros = String(repeating: "00", count: count)
    let indefinite = try CBORItem(bytes("9f" + zeros + "ff"))
    var encoder = CBOREncoder()
    encoder.array(count)
    let definite = try CBORItem(encoder.bytes + bytes(zeros))
    for case .array(let items) in [indefinite, definite] {
      #expect(items.count == count)
      #expect(items.capacity <= 2 * count + 4)
    }
    encoder = CBOREncoder()
    encoder.map(count)
    guard case .map(let pairs) = try CBORItem(encoder.bytes + bytes(zeros + zeros)) else {
      Issue.record("Not a map.")
      return
    }
    #expect(pairs.count == count)
    #expect(pairs.capacity <= 2 * count + 4)
  }

  @Test func `an empty buffer without an address is truncated input`() {
    var decoder = CBORDecoder(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(decoder.isAtEnd)
    #expect(throws: CBORError(.truncated, at: 0)) { try decoder.peek() }
    #expect(throws: CBORError(.truncated, at: 0)) { try decoder.skip() }
    #expect(throws: CBORError(.truncated, at: 0)) { try decoder.rawItem() }
    #expect(decoder.consumed(since: 0).isEmpty)
  }
}

struct TextTests {
  private func isText(_ utf8: [UInt8]) -> Bool {
    var encoder = CBOREncoder()
    encoder.head(.text, UInt64(utf8.count))
    let input = encoder.bytes + utf8
    let skipped = skipError(input)
    do throws(CBORError) {
      let item = try CBORItem(input)
      #expect(item == .text(String(decoding: utf8, as: UTF8.self)))
      let text = try CBORDecoder.read(input) { (decoder) throws(CBORError) in try decoder.text() }
      #expect(text.utf8.elementsEqual(utf8))
      #expect(skipped == nil)
      return true
    } catch {
      #expect(error == CBORError(.invalidText, at: 0))
      #expect(skipped == error)
      return false
    }
  }

  @Test(arguments: [
    "80", "bf", "c0", "c3", "c0af", "c1bf", "c328", "e0", "e082", "e08080", "e09fbf", "e28228",
    "eda080", "edbfbf", "f0808080", "f08fbfbf", "f09080", "f4908080", "f5808080", "f7bfbfbf",
    "f888808080", "fe", "ff", "61c3", "6161616161616161c3",
    "61616161616161ff61", "6161616161616161616161616161616180",
  ])
  func `bytes that are not UTF-8 are refused as text`(hex: String) {
    #expect(!isText(bytes(hex)))
  }

  @Test(arguments: [
    "00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbbbf", "efbfbf", "f0908080",
    "f48fbfbf", "61616161616161c3bc6161616161616161",
  ])
  func `the boundary values of UTF-8 are accepted as text`(hex: String) {
    #expect(isText(bytes(hex)))
  }

  @Test func `one byte that is not ASCII is found wherever it is in a short text`() {
    for length in 0...17 {
      let ascii = (0..<length).map { UInt8(ascii: "a") + UInt8($0) }
      #expect(isText(ascii))
      for place in ascii.indices {
        var utf8 = ascii
        utf8[place] = 0x80
        #expect(!isText(utf8), "\(hex(utf8))")
        utf8.replaceSubrange(place...place, with: "é".utf8)
        #expect(isText(utf8), "\(hex(utf8))")
      }
    }
  }

  @Test func `validation agrees with the standard library`() {
    var random = SeededGenerator(seed: 3629)
    // Bytes that begin, continue and break sequences, at every position of a machine word.
    let interesting: [UInt8] = [
      0x00, 0x61, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1,
      0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
    ]
    for _ in 0..<50_000 {
      var utf8 = Array(random.text(upTo: 6).utf8)
      for _ in 0..<random.below(3) {
        let byte = interesting[random.below(interesting.count)]
        utf8.insert(byte, at: random.below(utf8.count + 1))
      }
      let expected = String(validating: utf8, as: UTF8.self) != nil
      #expect(isText(utf8) == expected, "\(hex(utf8))")
    }
  }

  @Test func `every pair of bytes is valid exactly when the standard library says so`() {
    for pair in 0...UInt16.max {
      let utf8 = [UInt8(pair >> 8), UInt8(pair & 0xff)]
      if isText(utf8) != (String(validating: utf8, as: UTF8.self) != nil) {
        Issue.record("\(hex(utf8))")
      }
    }
  }

  @Test func `each chunk of a text must be UTF-8 by itself`() {
    #expect(throws: CBORError(.invalidText, at: 1)) { try CBORItem(bytes("7f61c361bcff")) }
    #expect(throws: CBORError(.invalidText, at: 3)) { try CBORItem(bytes("7f616161bcff")) }
    #expect(skipError(bytes("7f616161bcff")) == CBORError(.invalidText, at: 3))
  }
}
