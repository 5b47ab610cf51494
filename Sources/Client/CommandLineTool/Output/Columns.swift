// The room that text takes on a terminal, as most of them count it: two columns for what East Asian
// scripts and emoji fill, none for marks that are put on the character before.

extension String {
  /// The number of columns of the text, which has no control characters.
  var columns: Int {
    if utf8.allSatisfy({ $0 < 0x80 }) { return utf8.count }
    return reduce(0) { $0 + $1.columns }
  }

  /// The text in at most this many columns.
  func cut(to columns: Int) -> String {
    if self.columns <= columns { return self }
    var result = ""
    var room = columns - 1
    for character in self {
      room -= character.columns
      if room < 0 { break }
      result.append(character)
    }
    return columns > 0 ? result + "…" : ""
  }

  /// The text in exactly this many columns: cut, or with spaces behind it, or before a number.
  func filling(_ columns: Int, isNumber: Bool = false) -> String {
    let text = cut(to: columns)
    let space = String(repeating: " ", count: max(0, columns - text.columns))
    return isNumber ? space + text : text + space
  }
}

extension Character {
  /// The columns that the character takes, with the marks on it.
  var columns: Int {
    if unicodeScalars.contains(where: \.isWide) { return 2 }
    return unicodeScalars.reduce(0) { $0 + ($1.isMark ? 0 : 1) }
  }
}

extension Unicode.Scalar {
  /// Whether a terminal gives the character two columns (UAX 11).
  fileprivate var isWide: Bool {
    switch value {
    case ..<0x1100: false
    case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97c, 0xac00...0xd7a3,
      0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6,
      0x17000...0x18cff, 0x1b000...0x1b2ff, 0x20000...0x3fffd:
      true
    // The variation selector by which a sign becomes an emoji.
    case 0xfe0f: true
    default: properties.isEmojiPresentation
    }
  }

  /// Whether the character takes no column of its own.
  fileprivate var isMark: Bool {
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: true
    default: false
    }
  }
}
