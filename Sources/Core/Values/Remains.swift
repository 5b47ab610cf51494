/// Values that are no longer used and take long to release: about 50 ns for each entry of a map. An
/// event loop collects them here during a turn, and has another thread release them.
public struct Remains: Sendable {
  private var values: [any Sendable] = []
  /// Whether values are collected; otherwise each is released at once.
  private let areKept: Bool

  /// The number of values in a collection from which on it is worth another thread.
  public static let worthwhile = 1024

  /// Empty remains. With false, they stay empty.
  public init(areKept: Bool = true) { self.areKept = areKept }

  public var isEmpty: Bool { values.isEmpty }

  /// Keep a value that has just been dropped. O(1).
  public mutating func add(_ value: some Sendable) {
    if areKept { values.append(value) }
  }

  /// Keep what another owner has dropped. O(their number).
  @inline(__always)
  public mutating func add(_ others: Remains) {
    if !others.isEmpty { append(others) }
  }

  private mutating func append(_ others: Remains) {
    if areKept { values += others.values }
  }

  /// Take all of them.
  @inline(__always)
  public mutating func take() -> Remains {
    if isEmpty { return Remains() }
    defer { values = [] }
    return self
  }
}

extension Value {
  /// Whether more than `left` values are inside, itself included; those that were counted are
  /// subtracted. O(`left`), however large the value is.
  public func holdsMore(than left: inout Int) -> Bool {
    left -= 1
    switch self {
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes: return left < 0
    case .array(let elements):
      if elements.count > left { return true }
      for element in elements where element.holdsMore(than: &left) { return true }
      return false
    case .object(let entries):
      if entries.count > left { return true }
      var isMore = false
      entries.forEachEntry { _, value in
        isMore = isMore || value.holdsMore(than: &left)
      }
      return isMore
    }
  }
}
