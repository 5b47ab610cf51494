/// A key that the board knows.
enum Key: Equatable {
  case left, right, up, down
  case space, undo, quit
}

/// Reads keys from the bytes of a terminal: letters, and the arrows' escape sequences.
struct KeyReader {
  /// The bytes of a sequence that has begun.
  private var sequence: [UInt8] = []

  /// The key that a byte completes, or nil.
  mutating func read(_ byte: UInt8) -> Key? {
    switch (sequence.count, byte) {
    case (0, UInt8(ascii: "\u{1B}")):
      sequence = [byte]
      return nil
    case (1, UInt8(ascii: "[")):
      sequence.append(byte)
      return nil
    case (2, _):
      sequence = []
      let arrows: [UInt8: Key] = [0x41: .up, 0x42: .down, 0x43: .right, 0x44: .left]
      return arrows[byte]
    default:
      sequence = []
      return Self.letters[Character(Unicode.Scalar(byte))]
    }
  }

  private static let letters: [Character: Key] = [
    "h": .left, "l": .right, "k": .up, "j": .down, " ": .space, "u": .undo, "q": .quit,
    // Control-C and Control-D, which a terminal in raw mode sends as bytes.
    "\u{3}": .quit, "\u{4}": .quit,
  ]
}
