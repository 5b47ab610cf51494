public import CBOR
public import Values

/// The value of one mirror, or its absence. Type-erased, because the mirrors of a session differ in
/// type.
public struct MirroredValue: Sendable {
  private var content: any MirroredContent

  /// An absent value of this type.
  init<T: Synchronizable>(absent type: T.Type) { content = Content<T>(value: nil) }

  private init(_ content: any MirroredContent) { self.content = content }

  /// The value; nil if it is absent or of another type.
  public func value<T: Synchronizable>(as type: T.Type = T.self) -> T? {
    (content as? Content<T>)?.value
  }

  /// Whether values of this type are held.
  public func isOf<T: Synchronizable>(_ type: T.Type) -> Bool { content is Content<T> }

  public var isAbsent: Bool { content.isAbsent }

  /// Append the value in value form, or `undefined`.
  public func encode(into encoder: inout CBOREncoder) { content.encode(into: &encoder) }

  public func digest(seed: HashSeed) -> UInt64 { content.digest(seed: seed) }

  // MARK: For the subscription

  /// The next item, decoded as another value of the same type, or an absent one.
  func decoded(
    from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> MirroredValue {
    MirroredValue(try content.decoded(from: &decoder, seed: seed))
  }

  /// Apply the next item, a patch, and end the transaction: a mirror never settles, so notes of its
  /// changes would accumulate.
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try content.apply(patch: &decoder, seed: seed)
  }

  mutating func remove() { content.remove() }
}

private protocol MirroredContent: Sendable {
  var isAbsent: Bool { get }
  func encode(into encoder: inout CBOREncoder)
  func digest(seed: HashSeed) -> UInt64
  func decoded(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) -> Self
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)
  mutating func remove()
}

private struct Content<T: Synchronizable>: MirroredContent {
  var value: T?

  var isAbsent: Bool { value == nil }

  func encode(into encoder: inout CBOREncoder) { value.encode(into: &encoder) }

  func digest(seed: HashSeed) -> UInt64 { value.digest(seed: seed) }

  func decoded(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) -> Content {
    Content(value: try T?(from: &decoder, seed: seed))
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try value.apply(patch: &decoder, seed: seed)
    value.adopt(seed: seed)
  }

  mutating func remove() { value = nil }
}
