/// The labels of the rows of a `SyncIdentifiedArray`: numbers that rise along its order.
///
/// New labels at either end are `step` apart. A label between two others halves the gap, so a gap
/// takes at least 32 insertions at one position before labels around it must be spread.
@usableFromInline
enum OrderLabel {
  /// The row is not in the order.
  @inlinable static var none: UInt64 { 0 }
  /// The row is in the order and awaits its label: greater than every label.
  @inlinable static var pending: UInt64 { .max }
  /// The first label of an array that was empty: in the middle, so that both ends can grow by 2^31.
  @inlinable static var first: UInt64 { 1 << 63 }
  @inlinable static var step: UInt64 { 1 << 32 }

  /// The first of `count` new labels between two others, and the distance between them; nil when
  /// the gap has no room. A missing bound means that end of the array.
  @inlinable
  static func run(
    of count: Int, between below: UInt64?, and above: UInt64?
  ) -> (start: UInt64, step: UInt64)? {
    guard below != nil || above != nil else { return (first, step) }
    let (low, high) = (below ?? none, above ?? pending)
    // Invariant: labels rise, so `high` is above `low`.
    var gap = (high &- low) / (UInt64(count) &+ 1)
    if below == nil || above == nil { gap = Swift.min(gap, step) }
    if gap == 0 { return nil }
    return (below == nil ? high &- gap &* UInt64(count) : low &+ gap, gap)
  }
}

/// A range of labels whose size is a power of two, which grows until its rows can be spread over
/// it.
///
/// Theory: a range of 2^i labels may have 2^i / 1.25^i rows; the smallest range around a position
/// with fewer is spread evenly. So an insertion changes O(log n) labels, amortised. Source: Bender,
/// Cole, Demaine, Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a
/// list" (2002).
@usableFromInline
struct LabelRange {
  /// The label that is in the range.
  @usableFromInline let anchor: UInt64
  @usableFromInline var bits: UInt64 = 4
  /// The number of rows that the range may have: 1.6^bits.
  @usableFromInline var capacity = 6.5536

  @inlinable
  init(around anchor: UInt64) { self.anchor = anchor }

  @inlinable var size: UInt64 { 1 &<< bits }
  @inlinable var first: UInt64 { anchor & ~(size &- 1) }
  @inlinable var last: UInt64 { first | (size &- 1) }

  /// Double the range. Returns false when it is half of all labels already.
  @inlinable
  mutating func grow() -> Bool {
    if bits == 63 { return false }
    bits &+= 1
    capacity *= 1.6
    return true
  }
}
