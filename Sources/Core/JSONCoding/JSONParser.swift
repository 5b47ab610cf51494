import Values

/// Reads one JSON text, byte after byte.
struct JSONParser {
  let base: UnsafePointer<UInt8>
  let end: Int
  var cursor = 0
  var depthLeft: Int
  let depthLimit: Int
  let seed: HashSeed
  let isTagged: Bool
  /// The decoded bytes of a string with escapes; kept to reuse the memory.
  var scratch: [UInt8] = []

  init(_ bytes: UnsafeRawBufferPointer, seed: HashSeed, depth: Int, isTagged: Bool) {
    // An empty buffer may have no address; `end` is 0 then and `base` is never read.
    let start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    base = start.assumingMemoryBound(to: UInt8.self)
    end = bytes.count
    depthLeft = depth
    depthLimit = depth
    self.seed = seed
    self.isTagged = isTagged
  }

  mutating func document() throws(JSONError) -> Value {
    if end >= 3 && base[0] == 0xef && base[1] == 0xbb && base[2] == 0xbf {
      throw error("JSON text must not begin with a byte order mark (EF BB BF)", at: 0)
    }
    skipSpace()
    if cursor == end { throw error("expected a value, found the end of the text") }
    let value = try value()
    skipSpace()
    if cursor < end { throw error("expected the end of the text, found \(found)") }
    return value
  }

  @inline(__always)
  mutating func skipSpace() {
    while cursor < end {
      let byte = base[cursor]
      guard byte <= 0x20, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 else {
        return
      }
      cursor &+= 1
    }
  }

  /// The next byte, or 0, which no JSON text has between its tokens.
  @inline(__always)
  var next: UInt8 { cursor < end ? base[cursor] : 0 }

  mutating func value() throws(JSONError) -> Value {
    switch next {
    case UInt8(ascii: "\""): return .text(try string())
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t"): return try literal("true", .bool(true))
    case UInt8(ascii: "f"): return try literal("false", .bool(false))
    case UInt8(ascii: "n"): return try literal("null", .null)
    default: throw error("expected a value, found \(found)")
    }
  }

  mutating func literal(_ word: StaticString, _ value: Value) throws(JSONError) -> Value {
    for index in 0..<word.utf8CodeUnitCount {
      guard cursor + index < end, base[cursor + index] == word.utf8Start[index] else {
        throw error("expected \(word)")
      }
    }
    cursor += word.utf8CodeUnitCount
    return value
  }

  // MARK: Containers

  mutating func descend() throws(JSONError) {
    guard depthLeft > 0 else {
      let document = "\(JSON.documentDepth), \(JSON.countingLevels)"
      throw error("nested deeper than \(depthLimit) levels; a document takes \(document)")
    }
    depthLeft -= 1
    cursor += 1
    skipSpace()
  }

  mutating func array() throws(JSONError) -> Value {
    try descend()
    defer { depthLeft += 1 }
    var elements: [Value] = []
    if next == UInt8(ascii: "]") {
      cursor += 1
      return adopted(.array(TreeArray()))
    }
    while true {
      elements.append(try value())
      skipSpace()
      if next == UInt8(ascii: ",") {
        cursor += 1
        skipSpace()
        if next == UInt8(ascii: "]") { throw error("expected a value after ',', found ']'") }
      } else if next == UInt8(ascii: "]") {
        cursor += 1
        return adopted(.array(TreeArray(elements)))
      } else {
        throw error(
          "expected ',' or ']' after element \(elements.count - 1) of the array, found \(found)")
      }
    }
  }

  /// The value, whose elements hash with `seed` already.
  func adopted(_ value: consuming Value) -> Value {
    var value = value
    value.adopt(seed: seed)
    return value
  }

  mutating func object() throws(JSONError) -> Value {
    try descend()
    defer { depthLeft += 1 }
    var entries = TrieMap<String, Value>(seed: seed)
    if next == UInt8(ascii: "}") {
      cursor += 1
      return .object(entries)
    }
    while true {
      let start = cursor
      guard next == UInt8(ascii: "\"") else {
        let after = entries.isEmpty ? " or '}'" : " after ','"
        throw error("expected the name of a member in quotes\(after), found \(found)")
      }
      let name = try string()
      skipSpace()
      guard next == UInt8(ascii: ":") else {
        throw error("expected ':' after the name \(Self.quoted(name)), found \(found)")
      }
      cursor += 1
      skipSpace()
      guard entries.updateValue(try value(), forKey: name) == nil else {
        throw error("the object has a member \(Self.quoted(name)) already", at: start)
      }
      skipSpace()
      if next == UInt8(ascii: ",") {
        cursor += 1
        skipSpace()
      } else if next == UInt8(ascii: "}") {
        cursor += 1
        return isTagged ? Self.untagged(entries) : .object(entries)
      } else {
        throw error(
          "expected ',' or '}' after the value of \(Self.quoted(name)), found \(found)")
      }
    }
  }

  // MARK: Errors

  /// The next byte, for an error message.
  var found: String {
    guard cursor < end else { return "the end of the text" }
    let byte = base[cursor]
    if byte > 0x20 && byte < 0x7f { return "'\(Character(UnicodeScalar(byte)))'" }
    // A byte that begins a valid code point is shown as that code point.
    let rest = UnsafeBufferPointer(start: base + cursor, count: Swift.min(4, end - cursor))
    let scalar = String(decoding: rest, as: UTF8.self).unicodeScalars.first ?? "\u{fffd}"
    return scalar.value > 0xa0 && scalar != "\u{fffd}"
      ? "'\(Character(scalar))'" : "byte 0x\(String(byte, radix: 16))"
  }

  static func quoted(_ name: String) -> String { JSON.text(.text(name.truncated)) }

  func error(_ message: String) -> JSONError { error(message, at: cursor) }

  func error(_ message: String, at offset: Int) -> JSONError {
    var line = 1
    var column = 1
    for byte in UnsafeBufferPointer(start: base, count: offset) {
      if byte == 0x0a {
        line += 1
        column = 1
      } else if byte & 0xc0 != 0x80 {
        column += 1
      }
    }
    return JSONError(message, offset: offset, line: line, column: column)
  }
}
