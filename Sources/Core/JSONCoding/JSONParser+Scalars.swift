import Values

// MARK: Strings

extension JSONParser {
  /// Read the string whose opening quote is next. A string without escapes is validated and copied
  /// in bulk.
  mutating func string() throws(JSONError) -> String {
    let start = cursor
    cursor &+= 1
    skipPlain()
    guard next == UInt8(ascii: "\"") else { return try escapedString(from: start) }
    let bytes = UnsafeBufferPointer(start: base + start + 1, count: cursor &- start &- 1)
    guard let text = Self.text(bytes) else { throw invalidText(from: start + 1) }
    cursor &+= 1
    return text
  }

  /// The text of these bytes; nil if they are not UTF-8. `String.init(validating:as:)` does the
  /// same, but looks up generic metadata for each string, which takes longer than all else.
  @inline(__always)
  private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    // Invalid UTF-8 has been replaced, so that the bytes differ.
    if text.utf8.count == bytes.count {
      var all: UInt8 = 0
      for byte in bytes { all |= byte }
      if all < 0x80 || text.utf8.elementsEqual(bytes) { return text }
    }
    return nil
  }

  /// Move to the next quote, backslash or control character, or to the end.
  @inline(__always)
  mutating func skipPlain() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let tops: UInt64 = 0x8080_8080_8080_8080
    while cursor &+ 8 <= end {
      let word = UnsafeRawPointer(base + cursor).loadUnaligned(as: UInt64.self)
      // A byte's top bit is set where it is zero after the exclusive or, or below 0x20.
      let quotes = word ^ (ones &* 0x22)
      let slashes = word ^ (ones &* 0x5c)
      let hits =
        ((quotes &- ones) & ~quotes) | ((slashes &- ones) & ~slashes)
        | ((word &- ones &* 0x20) & ~word)
      if hits & tops != 0 { break }
      cursor &+= 8
    }
    while cursor < end {
      let byte = base[cursor]
      if byte == 0x22 || byte == 0x5c || byte < 0x20 { return }
      cursor &+= 1
    }
  }

  private mutating func escapedString(from start: Int) throws(JSONError) -> String {
    scratch.removeAll(keepingCapacity: true)
    var plain = start + 1
    while true {
      scratch.append(contentsOf: UnsafeBufferPointer(start: base + plain, count: cursor - plain))
      guard cursor < end else {
        throw error("the string that begins here has no closing quote", at: start)
      }
      switch base[cursor] {
      case UInt8(ascii: "\""):
        guard let text = scratch.withUnsafeBufferPointer({ Self.text($0) }) else {
          throw invalidText(from: start + 1)
        }
        cursor += 1
        return text
      case UInt8(ascii: "\\"): try escape()
      case let control:
        throw error(
          "control character 0x\(String(control, radix: 16)) in a string; write it as \\u00"
            + "\(control < 16 ? "0" : "")\(String(control, radix: 16))")
      }
      plain = cursor
      skipPlain()
    }
  }

  /// Read one escape (RFC 8259, section 7) into `scratch`.
  private mutating func escape() throws(JSONError) {
    let start = cursor
    guard cursor + 1 < end else {
      throw error("the text ends inside an escape")
    }
    cursor += 2
    switch base[start + 1] {
    case UInt8(ascii: "\""): scratch.append(0x22)
    case UInt8(ascii: "\\"): scratch.append(0x5c)
    case UInt8(ascii: "/"): scratch.append(0x2f)
    case UInt8(ascii: "b"): scratch.append(0x08)
    case UInt8(ascii: "f"): scratch.append(0x0c)
    case UInt8(ascii: "n"): scratch.append(0x0a)
    case UInt8(ascii: "r"): scratch.append(0x0d)
    case UInt8(ascii: "t"): scratch.append(0x09)
    case UInt8(ascii: "u"): scratch.append(contentsOf: try codePoint(from: start).utf8)
    default:
      cursor = start + 1
      throw error("\\ must be followed by one of \" \\ / b f n r t u, not \(found)", at: start)
    }
  }

  /// Read the digits of `\u`, and those of the second half of a surrogate pair.
  private mutating func codePoint(from start: Int) throws(JSONError) -> Character {
    let first = try hexadecimal(from: start)
    if let scalar = UnicodeScalar(first) { return Character(scalar) }
    guard first < 0xdc00, cursor + 1 < end, base[cursor] == UInt8(ascii: "\\"),
      base[cursor + 1] == UInt8(ascii: "u")
    else { throw loneSurrogate(first, at: start) }
    cursor += 2
    let second = try hexadecimal(from: cursor - 2)
    guard second >= 0xdc00 && second <= 0xdfff,
      let scalar = UnicodeScalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw loneSurrogate(first, at: start) }
    return Character(scalar)
  }

  private func loneSurrogate(_ value: UInt32, at start: Int) -> JSONError {
    error("\\u\(String(value, radix: 16)) is half of a surrogate pair without the other", at: start)
  }

  private mutating func hexadecimal(from start: Int) throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard cursor < end, let digit = Character(UnicodeScalar(base[cursor])).hexDigitValue else {
        throw error("\\u must be followed by four hexadecimal digits", at: start)
      }
      value = value << 4 | UInt32(digit)
      cursor += 1
    }
    return value
  }

  /// The error for the first byte that is not UTF-8.
  private func invalidText(from start: Int) -> JSONError {
    var iterator = UnsafeBufferPointer(start: base + start, count: end - start).makeIterator()
    var decoder = UTF8()
    var offset = start
    while case .scalarValue(let scalar) = decoder.decode(&iterator) {
      offset += UTF8.width(scalar)
    }
    let byte = offset < end ? String(base[offset], radix: 16) : "?"
    return error("byte 0x\(byte) is not UTF-8 here", at: Swift.min(offset, end))
  }
}

// MARK: Numbers

extension JSONParser {
  /// Read a number (RFC 8259, section 6).
  mutating func number() throws(JSONError) -> Value {
    let start = cursor
    let isNegative = next == UInt8(ascii: "-")
    if isNegative { cursor &+= 1 }
    // Up to 19 digits fit 64 bits.
    var digits: UInt64 = 0
    let first = cursor
    digits = readDigits(digits)
    let whole = cursor &- first
    guard whole > 0 else { throw error("expected a digit after '-', found \(found)") }
    if whole > 1 && base[first] == UInt8(ascii: "0") {
      throw error("a number must not begin with 0 and another digit", at: start)
    }
    let byte = next
    guard byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e") else {
      return try integer(from: start, digits, whole, isNegative)
    }
    var fraction = 0
    if byte == UInt8(ascii: ".") {
      cursor &+= 1
      let first = cursor
      digits = readDigits(digits)
      fraction = cursor &- first
      guard fraction > 0 else { throw error("expected a digit after '.', found \(found)") }
    }
    let exponent = next | 0x20 == UInt8(ascii: "e") ? try exponent() : 0
    // If both operands are exact, the quotient or product is rounded once, and correctly (Clinger
    // 1990).
    let power = exponent &- fraction
    if whole &+ fraction <= 19 && digits <= 1 << 53 && power >= -22 && power <= 22 {
      let value = Double(digits)
      let scaled = power < 0 ? value / Self.powersOfTen[-power] : value * Self.powersOfTen[power]
      return .double(isNegative ? -scaled : scaled)
    }
    let text = numberText(from: start)
    guard let value = Double(text), value.isFinite else {
      throw error("\(text.truncated) is too large for a 64-bit double", at: start)
    }
    return .double(value)
  }

  @inline(__always)
  private mutating func readDigits(_ before: UInt64) -> UInt64 {
    var digits = before
    while cursor < end {
      let digit = base[cursor] &- UInt8(ascii: "0")
      guard digit <= 9 else { break }
      digits = digits &* 10 &+ UInt64(digit)
      cursor &+= 1
    }
    return digits
  }

  private mutating func exponent() throws(JSONError) -> Int {
    cursor += 1
    let isNegative = next == UInt8(ascii: "-")
    if isNegative || next == UInt8(ascii: "+") { cursor += 1 }
    let first = cursor
    var value = 0
    while cursor < end, base[cursor] >= 0x30, base[cursor] <= 0x39 {
      // The capped value is enough to know that the exponent is out of range.
      value = Swift.min(value * 10 + Int(base[cursor] - 0x30), 1_000_000)
      cursor += 1
    }
    guard cursor > first else { throw error("expected a digit of the exponent, found \(found)") }
    return isNegative ? -value : value
  }

  private func integer(
    from start: Int, _ digits: UInt64, _ count: Int, _ isNegative: Bool
  ) throws(JSONError) -> Value {
    if count <= 18 { return .integer(isNegative ? -Int64(digits) : Int64(digits)) }
    let text = numberText(from: start)
    if let value = Int64(text) { return .integer(value) }
    if let value = UInt64(text) { return .unsigned(value) }
    let double = text.utf8.count <= 80 ? "\(text).0" : "it with '.0' behind it"
    throw error(
      "the integer \(text.truncated) does not fit 64 bits: write \(double), a double, "
        + "which may round it, or a string in quotes", at: start)
  }

  private func numberText(from start: Int) -> String {
    String(decoding: UnsafeBufferPointer(start: base + start, count: cursor - start), as: UTF8.self)
  }

  /// All powers of ten that a double holds exactly.
  private static let powersOfTen: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}
