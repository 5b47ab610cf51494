public import CBOR
public import Values

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
public struct Timestamp: Hashable, Comparable, Sendable {
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static func < (first: Timestamp, second: Timestamp) -> Bool {
    first.nanoseconds < second.nanoseconds
  }

  /// The time after this duration, clamped to the range of `Timestamp`.
  public static func + (time: Timestamp, duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    let whole = Int128(seconds) * 1_000_000_000
    let sum = Int128(time.nanoseconds) + whole + Int128(attoseconds / 1_000_000_000)
    return Timestamp(nanoseconds: Int64(clamping: sum))
  }
}

extension Timestamp: SynchronizableScalar {
  public func encode(into encoder: inout CBOREncoder) { nanoseconds.encode(into: &encoder) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    nanoseconds = try Int64(from: &decoder, seed: seed)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
}

extension Timestamp: CustomStringConvertible {
  /// ISO 8601 with milliseconds: `2026-11-21T10:00:00.000Z`.
  public var description: String {
    let milliseconds = (nanoseconds / 1_000_000) - (nanoseconds % 1_000_000 < 0 ? 1 : 0)
    let (day, ofDay) = Self.floorDivide(milliseconds, 86_400_000)
    let (year, month, date) = Self.civil(day)
    func pad(_ number: Int64, _ width: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let (hour, minute) = (ofDay / 3_600_000, ofDay / 60_000 % 60)
    let (second, milli) = (ofDay / 1000 % 60, ofDay % 1000)
    return "\(pad(year, 4))-\(pad(month, 2))-\(pad(date, 2))T"
      + "\(pad(hour, 2)):\(pad(minute, 2)):\(pad(second, 2)).\(pad(milli, 3))Z"
  }

  private static func floorDivide(_ value: Int64, _ by: Int64) -> (Int64, Int64) {
    let rest = (value % by + by) % by
    return ((value - rest) / by, rest)
  }

  /// Year, month and day of a day counted from 1970-01-01.
  ///
  /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
  private static func civil(_ day: Int64) -> (Int64, Int64, Int64) {
    let shifted = day + 719_468
    let (era, dayOfEra) = floorDivide(shifted, 146_097)
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let date = dayOfYear - (153 * month + 2) / 5 + 1
    let civilMonth = month < 10 ? month + 3 : month - 9
    return (yearOfEra + era * 400 + (civilMonth <= 2 ? 1 : 0), civilMonth, date)
  }
}
