import CBOR
import Lockstep
import Values

// The shell knows how much memory the process may still have (a control group's limit, the
// process's own, the machine's), and the kernel kills a process that exceeds it. So the shell tells
// the core, and the core refuses work that would take too much: the rest must always hold a
// snapshot of the state, three times its bytes, and a reserve for everything else.
//
// Between two measurements each received byte counts for `weight` bytes of memory, which is more
// than it takes. When that has used up half of the measured surplus, a new measurement is due.

/// The memory that the process may still take, by the nearest limit.
public struct MemoryReading: Equatable, Sendable {
  /// The bytes that are left below the limit.
  public var free: Int
  /// The limit in bytes.
  public var limit: Int
  /// The name of the limit, for people.
  public var name: String

  public init(free: Int, limit: Int, name: String) {
    self.free = free
    self.limit = limit
    self.name = name
  }
}

/// The memory that actions may still take.
struct MemoryBudget: Sendable {
  private var reading: MemoryReading?
  /// The bytes that must remain free for a snapshot of the state.
  private var snapshotBytes = 0
  /// Whether the state may not grow.
  var isScarce: Bool { surplus < 0 }
  /// Estimated bytes beyond those that must remain free: negative if memory is scarce. Without a
  /// limit, more than any machine has.
  private(set) var surplus = Self.endless
  private var surplusWhenRead = Self.endless
  /// The most bytes available since memory became scarce; nil while it is not.
  private var scarceAt: Int?
  private var takenMeanwhile = 0
  private var isMeasuring = false

  private static let endless = 1 << 60
  /// In input longer than this the items are counted; in shorter input each byte counts as one
  /// item.
  private static let largeCount = 1 << 12
  /// The most memory that a byte of a small value takes: a member of an object, with its nodes.
  static let weight = 40
  /// An action of at most this many bytes may be a removal, if it does not say.
  private static let smallActionBytes = 128

  /// The bytes that jobs beside the loop may take together: those that are kept free, and a quarter of
  /// what actions may take before the next measurement. That is due when they have taken half of it,
  /// and they are counted for more than they take.
  var jobBytes: Int {
    guard reading != nil else { return .max }
    return surplus < 0 ? max(0, available) : snapshotBytes + reserve + surplus / 4
  }

  // MARK: Measuring

  /// Count a change by its patch. O(1), and O(its items) if it is large.
  mutating func note(_ patch: [UInt8]) { take(bytes: Self.cost(ofPatch: patch)) }

  mutating func note(_ weight: PatchWeight) { take(bytes: weight.cost) }

  @inline(__always)
  private mutating func take(bytes: Int) {
    surplus &-= bytes
    takenMeanwhile &+= bytes
  }

  @inline(__always)
  static func cost(ofPatch patch: [UInt8]) -> Int {
    patch.count <= largeCount
      ? patch.count &* weight : patch.withUnsafeBytes { cost(of: $0) }
  }

  /// About how much memory it takes to decode an action's bytes and to perform it. O(the items).
  ///
  /// The bytes travel on as a patch, to the journal and to each scope, and the snapshot grows by
  /// them. Small containers take more than other items.
  static func cost(of bytes: UnsafeRawBufferPointer) -> Int {
    if bytes.count <= largeCount { return (2 * weight + 7) * bytes.count }
    var estimate = MemoryEstimate()
    var decoder = CBORDecoder(bytes)
    // Bytes that cannot be read to their end are no action.
    try? estimate.addValue(&decoder)
    return max(2 * weight * ItemCount.items(in: bytes) + 7 * bytes.count, 2 * estimate.bytes)
  }

  /// Whether memory should be measured now. `isTime` is true once a second.
  func mustMeasure(isTime: Bool) -> Bool {
    !isMeasuring
      && (isTime || surplus < surplusWhenRead / 2 && surplus < surplusWhenRead - (1 << 20))
  }

  mutating func begin() {
    isMeasuring = true
    takenMeanwhile = 0
  }

  /// Store a measurement; nil if nothing limits the process. `snapshotBytes` is the memory that
  /// encoding the state takes.
  mutating func take(_ reading: MemoryReading?, snapshotBytes: Int) {
    isMeasuring = false
    // What there was below another limit says nothing about the growth since.
    if reading?.limit != self.reading?.limit { scarceAt = nil }
    self.reading = reading
    self.snapshotBytes = snapshotBytes
    guard let reading else {
      (surplus, scarceAt) = (Self.endless, nil)
      surplusWhenRead = surplus
      return
    }
    // Memory taken during the measurement may be counted twice: then a new measurement is due
    // early.
    surplusWhenRead = reading.free - snapshotBytes - reserve
    surplus = surplusWhenRead - takenMeanwhile
    scarceAt = surplus < 0 ? max(scarceAt ?? available, available) : nil
  }

  /// Store the memory that encoding the state takes, after that has been measured.
  mutating func take(snapshotBytes: Int) {
    guard reading != nil else { return }
    surplus += self.snapshotBytes - snapshotBytes
    surplusWhenRead += self.snapshotBytes - snapshotBytes
    self.snapshotBytes = snapshotBytes
    if surplus >= 0 { scarceAt = nil }
  }

  private var available: Int { surplus + snapshotBytes + reserve }

  /// For buffers, the journal and other temporary memory.
  private var reserve: Int { min(max((reading?.limit ?? 0) / 12, 4 << 20), 64 << 20) }

  /// About how much memory it takes to decode an action, of which the rest of a message consists, and
  /// to perform it; nil if there is enough memory for any action of this size.
  @inline(__always)
  func scarceCost(ofRestOf decoder: CBORDecoder) -> Int? {
    isAmple(for: decoder.remaining) ? nil : Self.cost(ofRestOf: decoder)
  }

  private static func cost(ofRestOf decoder: CBORDecoder) -> Int? {
    var decoder = decoder
    return (try? decoder.rawItem()).map { cost(of: $0) }
  }

  // MARK: Refusing

  /// Whether there is enough memory for any action of this size, so that it need not be examined.
  /// O(1).
  @inline(__always)
  func isAmple(for count: Int) -> Bool { surplus > count &* (2 * MemoryEstimate.mostPerByte) }

  /// The rejection of an action for lack of memory; nil if it may run. `isReplacing` if everything
  /// that it writes exists already.
  ///
  /// Actions that make the state smaller always run. Small actions that replace something, or do
  /// not state their footprint, run until only a quarter of the reserve is left; small ones that
  /// add something run until they have used up half of the reserve.
  func refusal(
    ofActionWith count: Int, _ footprint: ActionFootprint?, isReplacing: Bool, cost: Int
  ) -> Rejection? {
    if footprint == .smaller { return nil }
    if surplus >= cost { return nil }
    if count <= Self.smallActionBytes {
      if footprint == nil || footprint == .same && isReplacing {
        if available >= reserve / 4 { return nil }
      } else if available >= max(min(snapshotBytes + reserve, scarceAt ?? .max), reserve) - reserve
        / 2
      {
        return nil
      }
    }
    return rejection(
      "an action of \(count) bytes could take more than there is: until the state takes less, only "
        + "small actions and removals are done")
  }

  /// The rejection of bytes before they are decoded; nil if they may be. Their contents are not
  /// known before, and few bytes take little memory.
  func refusal(ofBytes count: Int, cost: Int) -> Rejection? {
    guard count > Self.largeCount, available < cost + reserve / 4 else { return nil }
    return rejection("\(count) bytes would take about \(cost) as an action")
  }

  private func rejection(_ why: String) -> Rejection {
    Rejection(
      .limit,
      "the daemon has \(max(available, 0)) bytes of memory left, of the \(reading?.limit ?? 0) that "
        + "\(reading?.name ?? "it") allows, and keeps \(snapshotBytes + reserve) for a snapshot: \(why)"
    )
  }
}

/// The cost of decoding bytes.
package enum ItemCount {
  /// The number of items in the bytes of one item, each of which takes memory of its own; at most
  /// the number of bytes. O(the items).
  package static func items(in bytes: UnsafeRawBufferPointer) -> Int {
    var (offset, count) = (0, 0)
    while offset < bytes.count {
      let head = bytes[offset]
      count += 1
      offset += 1
      var argument = Int(head & 0x1f)
      let width = argument < 24 ? 0 : 1 << min(argument - 24, 3)
      if width > 0 {
        guard argument < 28, offset + width <= bytes.count else { return count }
        argument = bytes[offset..<(offset + width)].reduce(0) { $0 << 8 | Int($1) }
        offset += width
      }
      // The contents of strings are no items.
      if head >> 5 == 2 || head >> 5 == 3 {
        guard argument >= 0, argument <= bytes.count - offset else { return count }
        offset += argument
      }
    }
    return count
  }
}
