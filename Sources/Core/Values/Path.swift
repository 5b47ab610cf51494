public import CBOR

/// The position of a value in a state: an array of keys on the wire, a JSON Pointer for people.
@frozen
public struct Path: Hashable, Sendable, ExpressibleByArrayLiteral, CustomStringConvertible {
  public var keys: [PathKey]

  public init(_ keys: [PathKey] = []) { self.keys = keys }
  public init(arrayLiteral elements: PathKey...) { keys = elements }

  /// The whole state.
  public static let root = Path()

  /// The path of a JSON Pointer (RFC 6901): every token becomes a text key. Nil when the pointer
  /// neither is empty nor starts with `/`, or has a `~` that is not `~0` or `~1`.
  public init?(pointer: String) {
    keys = []
    if pointer.isEmpty { return }
    guard pointer.utf8.first == UInt8(ascii: "/") else { return nil }
    let tokens = pointer.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    for token in tokens.dropFirst() {
      guard let key = Self.unescape(token) else { return nil }
      keys.append(.text(key))
    }
  }

  private static func unescape(_ token: Substring.UTF8View) -> String? {
    guard token.contains(UInt8(ascii: "~")) else { return String(Substring(token)) }
    var result: [UInt8] = []
    var escaped = false
    for byte in token {
      switch (escaped, byte) {
      case (false, UInt8(ascii: "~")): escaped = true
      case (false, _): result.append(byte)
      case (true, UInt8(ascii: "0")):
        result.append(UInt8(ascii: "~"))
        escaped = false
      case (true, UInt8(ascii: "1")):
        result.append(UInt8(ascii: "/"))
        escaped = false
      case (true, _): return nil
      }
    }
    return escaped ? nil : String(decoding: result, as: UTF8.self)
  }

  /// The path as a JSON Pointer (RFC 6901).
  public var pointer: String {
    var result: [UInt8] = []
    for key in keys {
      result.append(UInt8(ascii: "/"))
      for byte in key.description.utf8 {
        switch byte {
        case UInt8(ascii: "~"): result.append(contentsOf: "~0".utf8)
        case UInt8(ascii: "/"): result.append(contentsOf: "~1".utf8)
        default: result.append(byte)
        }
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The sentence, followed by the path in parentheses unless a word of the sentence is the path
  /// already. O(length).
  package func named(behind sentence: String) -> String {
    if keys.isEmpty {
      let saysIt = sentence.indices.contains { sentence[$0...].hasPrefix("the root") }
      return saysIt ? sentence : "\(sentence) (at the whole document)"
    }
    let pointer = pointer
    let isSaid = sentence.split(separator: " ").contains { word in
      word == pointer
        || (word.last.map { ",.:;".contains($0) } == true && word.dropLast() == pointer)
    }
    return isSaid ? sentence : "\(sentence) (at \(pointer))"
  }

  public var description: String { keys.isEmpty ? "the whole" : pointer }

  /// The approximate size of the keys in bytes. O(keys).
  package var byteCount: Int {
    keys.reduce(0) { bytes, key in
      switch key {
      case .text(let text): bytes + text.utf8.count
      case .integer: bytes + 9
      }
    }
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(keys.count)
    for key in keys { key.encode(into: &encoder) }
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let count = try decoder.array()
    keys = []
    for index in 0..<count {
      let key = try PathKey(from: &decoder)
      if count == 1 {
        // Made at once, which is cheaper than an empty one that grows.
        keys = [key]
      } else {
        if index == 0 { keys.reserveCapacity(Swift.min(count, 64)) }
        keys.append(key)
      }
    }
    decoder.close()
  }

  /// Decode a path in the place of this one: with as many keys, and its memory to itself, it allocates
  /// nothing but what those texts take that differ from the ones at their places.
  package mutating func decode(from decoder: inout CBORDecoder) throws(CBORError) {
    let before = decoder
    let count = try decoder.array()
    guard count == keys.count else {
      decoder = before
      self = try Path(from: &decoder)
      return
    }
    for index in 0..<count {
      // Most paths begin as others do.
      if case .text(let known) = keys[index], decoder.textIfNext(known) { continue }
      keys[index] = try PathKey(from: &decoder)
    }
    decoder.close()
  }

  /// Whether this path is equal to `other` or a prefix of it.
  public func leads(to other: Path) -> Bool { other.keys.starts(with: keys) }
}
