import Lockstep
import Values

extension Value {
  var isNumber: Bool {
    switch self {
    case .integer, .unsigned, .double: true
    case .null, .bool, .text, .bytes, .array, .object: false
    }
  }

  /// The number, if it is an integer.
  private var integer: Int128? {
    switch self {
    case .integer(let value): Int128(value)
    case .unsigned(let value): Int128(value)
    case .null, .bool, .double, .text, .bytes, .array, .object: nil
    }
  }

  private var asDouble: Double {
    switch self {
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .double(let value): value
    case .null, .bool, .text, .bytes, .array, .object: .nan
    }
  }

  /// The sum of two numbers: of integers exact, or a rejection; otherwise a finite double.
  static func sum(_ first: Value, _ second: Value, at path: Path) throws(Rejection) -> Value {
    if case .integer(let first) = first, case .integer(let second) = second {
      let (sum, overflows) = first.addingReportingOverflow(second)
      if !overflows { return .integer(sum) }
    }
    if let exact = first.integer, let other = second.integer {
      let sum = exact + other
      if let small = Int64(exactly: sum) { return .integer(small) }
      if let large = UInt64(exactly: sum) { return .unsigned(large) }
      throw Rejection(
        .numberOutOfRange, "\(first.summary) + \(second.summary) does not fit 64 bits", at: path)
    }
    let sum = first.asDouble + second.asDouble
    guard sum.isFinite else {
      throw Rejection(
        .numberOutOfRange, "\(first.summary) + \(second.summary) is no finite number", at: path)
    }
    return .double(sum)
  }

  /// Equality by RFC 6902, section 4.6. O(1) where both share storage.
  func equals(_ other: Value) -> Bool {
    switch (self, other) {
    case (.array(let first), .array(let second)):
      return first.count == second.count
        && (first.isSame(as: second) || zip(first, second).allSatisfy { $0.equals($1) })
    case (.object(let first), .object(let second)):
      guard first.count == second.count else { return false }
      if first.isIdentical(to: second) { return true }
      return first.allSatisfy { name, value in second[name].map { value.equals($0) } ?? false }
    case (.double(let first), .double(let second)):
      return first == second || first.isSame(as: second)
    case (.double(let double), _): return other.integer.map { Self.isEqual(double, $0) } ?? false
    case (_, .double(let double)): return integer.map { Self.isEqual(double, $0) } ?? false
    default: return isSame(as: other)
    }
  }

  /// Whether a double is exactly an integer of 64 bits.
  private static func isEqual(_ double: Double, _ integer: Int128) -> Bool {
    if let signed = Int64(exactly: double) { return Int128(signed) == integer }
    if let unsigned = UInt64(exactly: double) { return Int128(unsigned) == integer }
    return false
  }
}
