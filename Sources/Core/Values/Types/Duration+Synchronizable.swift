public import CBOR

/// A duration travels as an integer: its nanoseconds, truncated. A duration that does not fit 64
/// bits, 292 years, is clamped.
extension Duration: SynchronizableScalar {
  /// The integer that travels.
  private var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, isBeyond) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isSumBeyond) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    if isBeyond || isSumBeyond { return seconds < 0 ? .min : .max }
    return sum
  }

  public func isSame(as other: Duration) -> Bool { nanoseconds == other.nanoseconds }

  public func encode(into encoder: inout CBOREncoder) { encoder.encode(nanoseconds) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = .nanoseconds(try decoder.integer())
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
}
