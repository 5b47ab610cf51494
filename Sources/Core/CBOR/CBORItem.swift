/// Any CBOR item as a tree: for tools, tests and data without a type of its own.
///
/// Equal items have equal encodings: text is compared by its UTF-8 and numbers by their bits,
/// except that all NaNs are one.
public enum CBORItem: Sendable {
  case unsigned(UInt64)
  /// The number -1 - n, so that the whole range of major type 1 fits.
  case negative(UInt64)
  case bytes([UInt8])
  case text(String)
  case array([CBORItem])
  /// Pairs in the order of the input, duplicates included.
  case map([Pair])
  indirect case tagged(UInt64, CBORItem)
  case bool(Bool)
  case null
  case undefined
  /// A simple value without a meaning of its own: 0 to 19 and 32 to 255.
  case simple(UInt8)
  case double(Double)

  public struct Pair: Equatable, Sendable {
    public var key: CBORItem
    public var value: CBORItem
    public init(_ key: CBORItem, _ value: CBORItem) {
      self.key = key
      self.value = value
    }
  }

  /// Decode exactly one item; trailing bytes are an error.
  public init(_ bytes: [UInt8], depth: Int = CBORDecoder.defaultDepth) throws(CBORError) {
    self = try CBORDecoder.read(bytes, depth: depth) { decoder throws(CBORError) in
      try CBORItem(from: &decoder)
    }
  }

  /// Decode the next item, of definite or indefinite length.
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let information = try decoder.peek() & 0x1f
    switch try decoder.peekMajor() {
    case .unsigned: self = .unsigned(try decoder.unsigned())
    case .negative: self = .negative(try decoder.head(.negative))
    case .bytes where information < 31: self = .bytes(try decoder.byteString())
    case .bytes: self = .bytes(try Self.joined(.bytes, &decoder))
    case .text where information < 31: self = .text(try decoder.text())
    case .text: self = .text(String(decoding: try Self.joined(.text, &decoder), as: UTF8.self))
    case .array: self = .array(try Self.elements(&decoder))
    case .map: self = .map(try Self.pairs(&decoder))
    case .tag:
      let number = try decoder.tag()
      let content = try CBORItem(from: &decoder)
      decoder.close()
      self = .tagged(number, content)
    case .simple where (25...27).contains(information): self = .double(try decoder.double())
    case .simple:
      switch try decoder.simpleArgument(information) {
      case 20: self = .bool(false)
      case 21: self = .bool(true)
      case 22: self = .null
      case 23: self = .undefined
      case let value: self = .simple(UInt8(truncatingIfNeeded: value))
      }
    }
  }

  /// The capacity to reserve for a collection that declares `count` entries. The declared count is
  /// unverified until the entries are read, and every open level declares one, so little is
  /// reserved.
  private static func reserve(for count: Int) -> Int { min(count, 16) }

  private static func elements(_ decoder: inout CBORDecoder) throws(CBORError) -> [CBORItem] {
    var items: [CBORItem] = []
    if try decoder.peek() == 0x9f {
      try decoder.openIndefinite(from: decoder.offset)
      while try !decoder.breakIfNext() { items.append(try CBORItem(from: &decoder)) }
    } else {
      let count = try decoder.array()
      items.reserveCapacity(reserve(for: count))
      for _ in 0..<count { items.append(try CBORItem(from: &decoder)) }
    }
    decoder.close()
    return items
  }

  private static func pairs(_ decoder: inout CBORDecoder) throws(CBORError) -> [Pair] {
    var pairs: [Pair] = []
    if try decoder.peek() == 0xbf {
      try decoder.openIndefinite(from: decoder.offset)
      while try !decoder.breakIfNext() {
        pairs.append(Pair(try CBORItem(from: &decoder), try CBORItem(from: &decoder)))
      }
    } else {
      let count = try decoder.map()
      pairs.reserveCapacity(reserve(for: count))
      for _ in 0..<count {
        pairs.append(Pair(try CBORItem(from: &decoder), try CBORItem(from: &decoder)))
      }
    }
    decoder.close()
    return pairs
  }

  private static func joined(
    _ major: MajorType, _ decoder: inout CBORDecoder
  ) throws(CBORError) -> [UInt8] {
    var joined: [UInt8] = []
    try decoder.chunks(of: major) { chunk throws(CBORError) in joined.append(contentsOf: chunk) }
    return joined
  }

  /// Append the item in definite lengths and shortest heads, keeping the order of pairs.
  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .unsigned(let value): encoder.encode(value)
    case .negative(let value): encoder.head(.negative, value)
    case .bytes(let value): encoder.encode(bytes: value)
    case .text(let value): encoder.encode(value)
    case .array(let items):
      encoder.array(items.count)
      for item in items { item.encode(into: &encoder) }
    case .map(let pairs):
      encoder.map(pairs.count)
      for pair in pairs {
        pair.key.encode(into: &encoder)
        pair.value.encode(into: &encoder)
      }
    case .tagged(let number, let content):
      encoder.head(.tag, number)
      content.encode(into: &encoder)
    case .bool(let value): encoder.encode(value)
    case .null: encoder.encodeNull()
    case .undefined: encoder.encodeUndefined()
    case .simple(let value):
      precondition(!(20...31).contains(value), "Not a simple value without a meaning: \(value).")
      encoder.head(.simple, UInt64(value))
    case .double(let value): encoder.encode(value)
    }
  }
}

extension CBORItem: Equatable {
  public static func == (left: CBORItem, right: CBORItem) -> Bool {
    switch (left, right) {
    case (.unsigned(let left), .unsigned(let right)): left == right
    case (.negative(let left), .negative(let right)): left == right
    case (.bytes(let left), .bytes(let right)): left == right
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.array(let left), .array(let right)): left == right
    case (.map(let left), .map(let right)): left == right
    case (.tagged(let leftNumber, let left), .tagged(let rightNumber, let right)):
      leftNumber == rightNumber && left == right
    case (.bool(let left), .bool(let right)): left == right
    case (.null, .null), (.undefined, .undefined): true
    case (.simple(let left), .simple(let right)): left == right
    case (.double(let left), .double(let right)):
      left.bitPattern == right.bitPattern || (left.isNaN && right.isNaN)
    case (.unsigned, _), (.negative, _), (.bytes, _), (.text, _), (.array, _), (.map, _),
      (.tagged, _), (.bool, _), (.null, _), (.undefined, _), (.simple, _), (.double, _):
      false
    }
  }
}
