public import CBOR

/// Integers of other sizes are keys as `Int` is, except `UInt` and `UInt64`: keys on the wire end
/// at 2^63 - 1.
extension SyncKey where Self: FixedWidthInteger {
  /// A bijection of the number, so distinct numbers never have the same hash.
  @inlinable
  public func hash(seed: HashSeed) -> UInt64 {
    Hashing.mix(UInt64(bitPattern: Int64(self)) &+ Hashing.mix(seed.rawValue))
  }

  @inlinable
  public static func isSame(_ first: Self, _ second: Self) -> Bool { first == second }

  @inlinable
  public static func precedes(_ first: Self, _ second: Self) -> Bool { first < second }

  @inlinable
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard let value = Self(exactly: try decoder.integer()) else {
      throw CBORError(.numberOutOfRange, at: start)
    }
    self = value
  }

  @inlinable public var pathKey: PathKey { .integer(Int64(self)) }

  @inlinable
  public init?(pathKey: PathKey) {
    guard case .integer(let value) = pathKey else { return nil }
    self.init(exactly: value)
  }

  public static var schemaKind: Schema.Kind { .integer }
}

extension Int64: SyncKey {}
extension Int32: SyncKey {}
extension UInt32: SyncKey {}
