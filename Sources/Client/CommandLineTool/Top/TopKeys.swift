/// A key of the keyboard.
enum TopKey: Equatable, Sendable {
  case character(Character)
  case enter, escape, backspace, tab, backTab
  case up, down, pageUp, pageDown, home, end
}

/// Reads keys from the bytes of a terminal in raw mode, however they are split.
struct TopKeys: Sendable {
  /// The beginning of a key whose rest has not come.
  private var pending: [UInt8] = []

  /// Whether a key has begun. Escape alone is such a beginning: after a moment without the rest of
  /// a sequence, `flush` says that it was the key.
  var isPending: Bool { !pending.isEmpty }

  /// The keys that are complete with these bytes. Sequences that are none of ours are left out.
  mutating func take(_ bytes: some Sequence<UInt8>) -> [TopKey] {
    pending += bytes
    var keys: [TopKey] = []
    var rest = pending[...]
    while !rest.isEmpty {
      guard let (key, length) = Self.first(of: rest) else { break }
      if let key { keys.append(key) }
      rest = rest.dropFirst(length)
    }
    pending = Array(rest)
    return keys
  }

  /// The key that the beginning of a sequence is by itself.
  mutating func flush() -> [TopKey] {
    defer { pending = [] }
    return pending.first == 0x1b ? [.escape] : []
  }

  /// The first key, nil if it is none of ours, and the number of its bytes; nil if that is not
  /// known yet.
  private static func first(of bytes: ArraySlice<UInt8>) -> (TopKey?, Int)? {
    guard let byte = bytes.first else { return nil }
    switch byte {
    case 0x1b: return sequence(bytes)
    case 0x0a, 0x0d: return (.enter, 1)
    case 0x08, 0x7f: return (.backspace, 1)
    case 0x09: return (.tab, 1)
    case 0x10: return (.up, 1)
    case 0x0e: return (.down, 1)
    case 0..<0x20: return (nil, 1)
    case 0x20..<0x7f: return (.character(Character(Unicode.Scalar(byte))), 1)
    default: return scalar(bytes)
    }
  }

  /// A character outside of ASCII, in UTF-8.
  private static func scalar(_ bytes: ArraySlice<UInt8>) -> (TopKey?, Int)? {
    guard let first = bytes.first else { return nil }
    let length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1
    guard bytes.count >= length else {
      let isGood = bytes.dropFirst().allSatisfy { $0 & 0xc0 == 0x80 }
      return isGood ? nil : (nil, 1)
    }
    let text = String(validating: bytes.prefix(length), as: UTF8.self)
    guard let character = text?.first, text?.unicodeScalars.contains(where: \.isUnsafe) == false
    else { return (nil, 1) }
    return (.character(character), length)
  }

  /// A sequence that begins with escape: `ESC [` or `ESC O`, parameters, and a final byte.
  private static func sequence(_ bytes: ArraySlice<UInt8>) -> (TopKey?, Int)? {
    let body = bytes.dropFirst()
    guard let kind = body.first else { return nil }
    // Escape, and then another key.
    guard kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else { return (.escape, 1) }
    let parameters = body.dropFirst().prefix { 0x20...0x3f ~= $0 }
    guard let final = body.dropFirst(1 + parameters.count).first else {
      return parameters.count > 16 ? (nil, bytes.count) : nil
    }
    let number = parameters.prefix { $0 != UInt8(ascii: ";") }
    return (key(final, Array(number)), 3 + parameters.count)
  }

  private static func key(_ final: UInt8, _ number: [UInt8]) -> TopKey? {
    switch final {
    case UInt8(ascii: "A"): .up
    case UInt8(ascii: "B"): .down
    case UInt8(ascii: "H"): .home
    case UInt8(ascii: "F"): .end
    case UInt8(ascii: "Z"): .backTab
    case UInt8(ascii: "~"):
      switch String(decoding: number, as: UTF8.self) {
      case "1", "7": .home
      case "4", "8": .end
      case "5": .pageUp
      case "6": .pageDown
      default: nil
      }
    default: nil
    }
  }
}
