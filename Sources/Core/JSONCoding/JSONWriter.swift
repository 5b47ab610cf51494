import Values

/// Appends values as JSON text.
struct JSONWriter {
  var bytes: [UInt8]
  let isPretty: Bool
  let sortsKeys: Bool

  mutating func write(_ value: Value, indent: Int) {
    switch value {
    case .null: raw("null")
    case .bool(let value): raw(value ? "true" : "false")
    case .integer(let value): bytes.append(contentsOf: value.description.utf8)
    case .unsigned(let value): bytes.append(contentsOf: value.description.utf8)
    case .double(let value): write(value)
    case .text(let text): write(text)
    case .bytes(let value): tagged("$bytes", Base64.text(value))
    case .array(let elements): write(elements, indent: indent)
    case .object(let entries): write(entries, indent: indent)
    }
  }

  private mutating func raw(_ text: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func tagged(_ name: StaticString, _ text: String) {
    raw("{\"")
    raw(name)
    raw(isPretty ? "\": \"" : "\":\"")
    bytes.append(contentsOf: text.utf8)
    raw("\"}")
  }

  /// The shortest text that reads back as the same double: `1.0`, `5e-324`, `1e+16`.
  private mutating func write(_ value: Double) {
    if value.isNaN {
      tagged("$double", "NaN")
    } else if value.isInfinite {
      tagged("$double", value < 0 ? "-Infinity" : "Infinity")
    } else {
      bytes.append(contentsOf: value.description.utf8)
    }
  }

  mutating func write(_ text: String) {
    var text = text
    bytes.append(0x22)
    text.withUTF8 { utf8 in
      var plain = 0
      for (index, byte) in utf8.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5c {
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[plain..<index]))
        escape(byte)
        plain = index + 1
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[plain...]))
    }
    bytes.append(0x22)
  }

  private mutating func escape(_ byte: UInt8) {
    switch byte {
    case 0x22: raw("\\\"")
    case 0x5c: raw("\\\\")
    case 0x08: raw("\\b")
    case 0x0c: raw("\\f")
    case 0x0a: raw("\\n")
    case 0x0d: raw("\\r")
    case 0x09: raw("\\t")
    default:
      raw("\\u00")
      bytes.append(UInt8(ascii: "0") + byte >> 4)
      let low = byte & 15
      bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
    }
  }

  // MARK: Containers

  private mutating func newLine(_ indent: Int) {
    if !isPretty { return }
    bytes.append(0x0a)
    for _ in 0..<indent { raw("  ") }
  }

  private mutating func write(_ elements: TreeArray<Value>, indent: Int) {
    bytes.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      newLine(indent + 1)
      write(element, indent: indent + 1)
    }
    if !isFirst { newLine(indent) }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func write(_ entries: TrieMap<String, Value>, indent: Int) {
    bytes.append(UInt8(ascii: "{"))
    var isFirst = true
    if sortsKeys {
      let sorted = entries.sorted { String.precedes($0.key, $1.key) }
      for (name, value) in sorted { member(name, value, indent, &isFirst) }
    } else {
      entries.forEachEntry { name, value in member(name, value, indent, &isFirst) }
    }
    if !isFirst { newLine(indent) }
    bytes.append(UInt8(ascii: "}"))
  }

  private mutating func member(
    _ name: String, _ value: Value, _ indent: Int, _ isFirst: inout Bool
  ) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    newLine(indent + 1)
    write(name)
    raw(isPretty ? ": " : ":")
    write(value, indent: indent + 1)
  }
}

extension JSONParser {
  /// The value that an object has in the tagged form: the object itself unless it is a tagged
  /// value.
  static func untagged(_ entries: TrieMap<String, Value>) -> Value {
    guard entries.count == 1, let (name, member) = entries.first(where: { _ in true }),
      case .text(let text) = member
    else { return .object(entries) }
    switch (name, text) {
    case ("$bytes", _): return Base64.bytes(text).map(Value.bytes) ?? .object(entries)
    case ("$double", "NaN"): return .double(.nan)
    case ("$double", "Infinity"): return .double(.infinity)
    case ("$double", "-Infinity"): return .double(-.infinity)
    default: return .object(entries)
    }
  }
}

/// Base64 with padding (RFC 4648, section 4).
enum Base64 {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func text(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<Swift.min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for place in 0..<4 {
        result.append(
          place <= group.count ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The bytes of a canonical text; nil for any other.
  static func bytes(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count % 4 == 0 else { return nil }
    let padding = characters.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
    var result: [UInt8] = []
    result.reserveCapacity(characters.count / 4 * 3)
    var bits = 0
    for (index, character) in characters.dropLast(padding).enumerated() {
      guard let digit = value(character) else { return nil }
      bits = bits << 6 | digit
      if index % 4 > 0 { result.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (index % 4)))) }
      if index % 4 == 0 { bits &= 63 }
    }
    // Unused bits of the last digit are zero in the canonical text.
    let spare = padding == 0 ? 0 : bits & (padding == 1 ? 3 : 15)
    return spare == 0 ? result : nil
  }

  private static func value(_ character: UInt8) -> Int? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(character) - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(character) - 71
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(character) + 4
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
