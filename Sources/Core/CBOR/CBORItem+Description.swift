extension CBORItem: CustomStringConvertible {
  /// The item in diagnostic notation (RFC 8949, section 8).
  public var description: String {
    var text = ""
    describe(into: &text)
    return text
  }

  private func describe(into text: inout String) {
    switch self {
    case .unsigned(let value): text += "\(value)"
    case .negative(.max): text += "-18446744073709551616"
    case .negative(let value): text += "-\(value + 1)"
    case .bytes(let value): Self.describe(value, into: &text)
    case .text(let value): Self.describe(value, into: &text)
    case .array(let items):
      text += "["
      for (index, item) in items.enumerated() {
        if index > 0 { text += ", " }
        item.describe(into: &text)
      }
      text += "]"
    case .map(let pairs):
      text += "{"
      for (index, pair) in pairs.enumerated() {
        if index > 0 { text += ", " }
        pair.key.describe(into: &text)
        text += ": "
        pair.value.describe(into: &text)
      }
      text += "}"
    case .tagged(let number, let content):
      text += "\(number)("
      content.describe(into: &text)
      text += ")"
    case .bool(let value): text += "\(value)"
    case .null: text += "null"
    case .undefined: text += "undefined"
    case .simple(let value): text += "simple(\(value))"
    case .double(let value): Self.describe(value, into: &text)
    }
  }

  private static func describe(_ bytes: [UInt8], into text: inout String) {
    text += "h'"
    for byte in bytes { describe(hex: byte, into: &text) }
    text += "'"
  }

  private static func describe(hex byte: UInt8, into text: inout String) {
    if byte < 16 { text += "0" }
    text += String(byte, radix: 16)
  }

  /// Quote and escape as JSON does.
  private static func describe(_ value: String, into text: inout String) {
    text += "\""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case "\0"..<" ", "\u{7f}":
        text += "\\u00"
        describe(hex: UInt8(truncatingIfNeeded: scalar.value), into: &text)
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }

  private static func describe(_ value: Double, into text: inout String) {
    if value.isNaN {
      text += "NaN"
    } else if value.isInfinite {
      text += value < 0 ? "-Infinity" : "Infinity"
    } else {
      // Swift writes 1e+300 and 6e-08; the RFC keeps the point and drops the zero.
      let parts = "\(value)".split(separator: "e")
      text += parts[0]
      guard parts.count == 2 else { return }
      if !parts[0].contains(".") { text += ".0" }
      let digits = parts[1].dropFirst()
      text += "e\(parts[1].prefix(1))\(digits.hasPrefix("0") ? digits.dropFirst() : digits)"
    }
  }
}
