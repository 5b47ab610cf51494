public import CBOR
public import FoundationEssentials
public import Values

// Theory: the decoded value must encode to the same integer again, or a mirror would differ from
// the daemon. A date is a Double of seconds, finer than a microsecond near the present and coarser
// far away. Both directions are computed on whole seconds and the rest separately, which is exact
// except for the rounding of the rest: then either the Double or the microsecond is the finer one,
// and rounding to the coarser and back changes nothing.

/// A date travels as an integer: the microseconds since 1970-01-01 00:00 UTC, rounded to the
/// nearest. Two dates are the same when these are.
///
/// Dates more than 9·10^12 seconds (285,000 years) away are clamped; one that is not a number
/// becomes 1970-01-01.
extension Date: SynchronizableScalar {
  /// Seconds from 1970-01-01 to 2001-01-01, where a `Date` counts from.
  private static var reference: Int64 { 978_307_200 }

  /// The encoded integer.
  private var microseconds: Int64 {
    let value = timeIntervalSinceReferenceDate
    if value.isNaN { return 0 }
    let furthest = 9e12 - Double(Self.reference)
    let clamped = Swift.min(furthest, Swift.max(-furthest, value))
    let seconds = clamped.rounded(.down)
    let rest = Int64(((clamped - seconds) * 1_000_000).rounded())
    return (Int64(seconds) + Self.reference) * 1_000_000 + rest
  }

  public func isSame(as other: Date) -> Bool { microseconds == other.microseconds }

  public func encode(into encoder: inout CBOREncoder) { encoder.encode(microseconds) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let (seconds, rest) = try decoder.integer().quotientAndRemainder(dividingBy: 1_000_000)
    self.init(
      timeIntervalSinceReferenceDate: Double(seconds - Self.reference) + Double(rest) / 1_000_000)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
}
