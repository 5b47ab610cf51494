public import CBOR
public import Values

extension Digest {
  /// The digest of a value from its value form alone, or of `undefined`: equal to
  /// `Synchronizable.digest` of the value that the bytes encode. O(its bytes).
  ///
  /// The bytes do not distinguish an array from an enumeration's case, but their digests differ: in
  /// a typed state, `kind` must be the kind of the value.
  public init(
    ofValueForm bytes: UnsafeRawBufferPointer, of kind: Schema.Kind? = .value,
    in schema: Schema? = nil, seed: HashSeed
  ) throws(CBORError) {
    var digester = ValueFormDigester(schema: schema, seed: seed, decoder: CBORDecoder(bytes))
    let digest = try digester.digest(of: kind)
    guard digester.decoder.isAtEnd else {
      throw CBORError(.trailingBytes(digester.decoder.remaining), at: digester.decoder.offset)
    }
    self.init(digest)
  }
}

/// Computes the digest of one value while it is read.
private struct ValueFormDigester {
  let schema: Schema?
  let seed: HashSeed
  var decoder: CBORDecoder
  /// A buffer for scalars that are re-encoded in their shortest form.
  var scratch = CBOREncoder()

  init(schema: Schema?, seed: HashSeed, decoder: CBORDecoder) {
    self.schema = schema
    self.seed = seed
    self.decoder = decoder
  }

  mutating func digest(of kind: Schema.Kind?) throws(CBORError) -> UInt64 {
    switch kind?.present {
    case .array(let element): try contents(of: element)
    case .map(_, let value): try contents(of: value)
    case .type(let name):
      switch schema?.types[name] {
      case .structure(let fields): try contents(of: nil, fields)
      case .enumeration: Hashing.sip(try decoder.rawItem(), seed: seed)
      case nil: try contents(of: .value)
      }
    default: try contents(of: .value)
    }
  }

  /// The digest of the next item, whose parts are of a kind, or are these fields.
  private mutating func contents(
    of kind: Schema.Kind?, _ fields: [Schema.Field] = []
  ) throws(CBORError) -> UInt64 {
    switch try decoder.peekMajor() {
    case .unsigned, .negative: return try number()
    case .bytes, .text: return try string()
    case .simple: return try simple()
    case .tag: throw CBORError(.notAllowed("a tag in a value"), at: decoder.offset)
    case .array:
      var polynomial: UInt64 = 0
      let count = try decoder.array()
      for _ in 0..<count {
        polynomial = polynomial &* Hashing.arrayBase &+ (try digest(of: kind))
      }
      decoder.close()
      return Hashing.array(polynomial: polynomial, count: count)
    case .map:
      var sum: UInt64 = 0
      var present = 0
      for _ in 0..<(try decoder.map()) {
        let key = try PathKey(from: &decoder)
        if decoder.undefinedIfNext() { continue }
        let kind = kind ?? fields.first { key == .integer(Int64($0.id)) }?.kind
        sum &+= Hashing.entry(keyHash: key.hash(seed: seed), digest: try digest(of: kind))
        present += 1
      }
      decoder.close()
      return Hashing.map(sum: sum, count: present)
    }
  }

  private mutating func number() throws(CBORError) -> UInt64 {
    let (start, major) = (decoder.offset, try decoder.peekMajor())
    let argument = try decoder.head(major)
    let bytes = decoder.consumed(since: start)
    if bytes.count == CBORDecoder.headLength(argument) { return Hashing.sip(bytes, seed: seed) }
    return shortest { $0.head(major, argument) }
  }

  private mutating func string() throws(CBORError) -> UInt64 {
    let (start, major) = (decoder, try decoder.peekMajor())
    let length = try decoder.head(major)
    let head = decoder.offset - start.offset
    decoder = start
    let bytes = try decoder.rawItem()
    if head == CBORDecoder.headLength(length) { return Hashing.sip(bytes, seed: seed) }
    return shortest {
      $0.head(major, length)
      $0.raw(bytes[head...])
    }
  }

  private mutating func simple() throws(CBORError) -> UInt64 {
    switch try decoder.peek() {
    case 0xf4...0xf7: return Hashing.sip(try decoder.rawItem(), seed: seed)
    case 0xf9...0xfb:
      let number = try decoder.double()
      return shortest { $0.encode(number) }
    default:
      throw CBORError(.notAllowed("\(decoder.nextName()) in a value"), at: decoder.offset)
    }
  }

  /// The digest of a scalar, re-encoded in its shortest form.
  private mutating func shortest(_ encode: (inout CBOREncoder) -> Void) -> UInt64 {
    scratch.bytes.removeAll(keepingCapacity: true)
    encode(&scratch)
    return scratch.bytes.withUnsafeBytes { Hashing.sip($0, seed: seed) }
  }
}

extension PathKey {
  /// The hash of a map's or struct's key.
  fileprivate func hash(seed: HashSeed) -> UInt64 {
    switch self {
    case .text(let text): text.hash(seed: seed)
    case .integer(let number): number.hash(seed: seed)
    }
  }
}
