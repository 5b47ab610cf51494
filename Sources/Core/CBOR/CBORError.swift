/// Why bytes are not the CBOR that was asked for, and where.
public struct CBORError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong with the item at `offset`.
  public enum Kind: Equatable, Sendable {
    /// The input ends inside an item.
    case truncated
    /// Bytes that no CBOR item has: additional information 28 to 30, 31 on an integer or tag, a
    /// two-byte simple value below 32, or a chunk of an indefinite-length string that is not a
    /// definite-length string of the same type (RFC 8949, 3 to 3.3).
    case malformed
    /// A text string that is not UTF-8.
    case invalidText
    /// A `break` where no indefinite-length item is open.
    case unexpectedBreak
    /// Arrays, maps and tags nest deeper than the decoder allows.
    case nestingTooDeep(limit: Int)
    /// An array, map or string that says it is longer than the bytes that follow could hold.
    case lengthBeyondInput(UInt64)
    /// A well-formed item of another type than the one asked for.
    case mismatch(expected: String, found: String)
    /// An integer that does not fit the type asked for.
    case numberOutOfRange
    /// Well-formed, but not what the layer above allows here; the text says why.
    case notAllowed(String)
    /// A case number that the layer above does not know.
    case unknownCase(UInt64)
    /// Bytes after the item that should have been the last.
    case trailingBytes(Int)
  }

  public var kind: Kind
  /// Bytes from the start of the input to the item's first byte.
  public var offset: Int

  public init(_ kind: Kind, at offset: Int) {
    self.kind = kind
    self.offset = offset
  }

  public var description: String {
    let what =
      switch kind {
      case .truncated: "the input ends inside an item"
      case .malformed: "not a well-formed item"
      case .invalidText: "text that is not UTF-8"
      case .unexpectedBreak: "a break outside an indefinite-length item"
      case .nestingTooDeep(let limit): "nesting deeper than \(limit)"
      case .lengthBeyondInput(let length): "length \(length) is more than the input holds"
      case .mismatch(let expected, let found): "expected \(expected), found \(found)"
      case .numberOutOfRange: "a number that does not fit"
      case .notAllowed(let why): why
      case .unknownCase(let number): "there is no case number \(number)"
      case .trailingBytes(let count): "\(count) bytes after the last item"
      }
    return "\(what), at byte \(offset)"
  }
}

/// The eight major types of RFC 8949, section 3.1.
@frozen
public enum MajorType: UInt8, Sendable {
  case unsigned = 0
  case negative = 1
  case bytes = 2
  case text = 3
  case array = 4
  case map = 5
  case tag = 6
  case simple = 7

  /// The top three bits of an item's first byte. The compiler makes a shift of this.
  @inlinable
  init(initialByte: UInt8) {
    switch initialByte >> 5 {
    case 0: self = .unsigned
    case 1: self = .negative
    case 2: self = .bytes
    case 3: self = .text
    case 4: self = .array
    case 5: self = .map
    case 6: self = .tag
    default: self = .simple
    }
  }
}
