extension Unicode.Scalar {
  /// Whether a terminal would act on the character, or reorder text because of it, instead of
  /// showing it: control characters, line and paragraph separators, bidirectional marks.
  var isUnsafe: Bool {
    switch value {
    case 0x00..<0x20, 0x7f..<0xa0, 0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069,
      0xfeff, 0xfff9...0xfffb:
      true
    default: false
    }
  }

  /// The character as JSON escapes it, `\u001b`. Every unsafe one lies in the first plane.
  var escape: String {
    let digits = String(value, radix: 16)
    return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

extension StringProtocol {
  /// The text with every character escaped that a terminal would act on.
  var escapingControls: String {
    guard unicodeScalars.contains(where: \.isUnsafe) else { return String(self) }
    var result = ""
    for scalar in unicodeScalars {
      if scalar.isUnsafe { result += scalar.escape } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }
}
