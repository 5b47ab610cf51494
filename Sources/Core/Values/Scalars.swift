public import CBOR
public import CPrefetch

extension Bool: SynchronizableScalar {
  @inlinable
  public func encode(into encoder: inout CBOREncoder) { encoder.encode(self) }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = try decoder.bool()
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .bool }
}

extension SynchronizableScalar where Self: FixedWidthInteger {
  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    if self < 0 {
      encoder.encode(Int64(truncatingIfNeeded: self))
    } else {
      encoder.encode(UInt64(truncatingIfNeeded: self))
    }
  }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    if try decoder.peekMajor() == .negative {
      guard let value = Self(exactly: try decoder.integer()) else {
        throw CBORError(.numberOutOfRange, at: start)
      }
      self = value
    } else {
      self = try decoder.unsigned(as: Self.self)
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    isSigned ? .integer : .unsigned
  }
}

extension Int: SynchronizableScalar {}
extension Int8: SynchronizableScalar {}
extension Int16: SynchronizableScalar {}
extension Int32: SynchronizableScalar {}
extension Int64: SynchronizableScalar {}
extension UInt: SynchronizableScalar {}
extension UInt8: SynchronizableScalar {}
extension UInt16: SynchronizableScalar {}
extension UInt32: SynchronizableScalar {}
extension UInt64: SynchronizableScalar {}

extension Double: SynchronizableScalar {
  /// Floats are compared by their bits, except that all NaNs are the same.
  @inlinable
  public func isSame(as other: Double) -> Bool {
    bitPattern == other.bitPattern || isNaN && other.isNaN
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { encoder.encode(self) }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = try decoder.double()
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .double }
}

extension String: SynchronizableScalar {
  /// Text is compared by its UTF-8.
  @inlinable @inline(__always)
  public func isSame(as other: String) -> Bool { String.isSame(self, other) }

  @inlinable @inline(__always)
  public func prefetchStorage() {
    utf8.withContiguousStorageIfAvailable { prefetch_line($0.baseAddress) }
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { encoder.encode(self) }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = try decoder.text()
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
}
