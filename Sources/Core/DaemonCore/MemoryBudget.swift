import CBOR
import Lockstep
import Values

// The shell knows how much memory the process may still have (a control group's limit, the
// process's own, the machine's), and the kernel ends a process that passes it. So the core is told,
// and does not do what would take too much: what is left must always hold a snapshot of the state,
// three times its bytes, and a reserve for everything else.
//
// Between two measurements each byte that is taken in counts for `weight` bytes of memory, which is
// more than it takes. When half of what there was is used up by that, it is time to measure again.

/// How much memory the process may still take, by the limit that is nearest.
public struct MemoryReading: Equatable, Sendable {
  /// The bytes that are left.
  public var free: Int
  /// All that the limit allows.
  public var limit: Int
  /// What sets the limit, for people.
  public var name: String

  public init(free: Int, limit: Int, name: String) {
    self.free = free
    self.limit = limit
    self.name = name
  }
}

/// What of the memory may still be taken by actions.
struct MemoryBudget: Sendable {
  private var reading: MemoryReading?
  /// What must remain for a snapshot of the state.
  private var snapshotBytes = 0
  /// Whether the state may not grow.
  var isScarce: Bool { surplus < 0 }
  /// Bytes beyond what must remain, as far as is known: negative when memory is scarce. Without a
  /// limit, more than any machine has.
  private(set) var surplus = Self.endless
  private var surplusWhenRead = Self.endless
  /// The most that was left since it became scarce, or what was left then.
  private var scarceAt: Int?
  private var takenMeanwhile = 0
  private var isMeasuring = false

  private static let endless = 1 << 60
  /// The items of more bytes are counted; each byte of fewer counts as one.
  private static let largeCount = 1 << 12
  /// Memory that a byte of a small value takes at most: a member of an object, with its nodes.
  static let weight = 40
  /// The bytes of an action that may be a removal, where it does not say.
  private static let smallActionBytes = 128

  // MARK: Measuring

  /// Count a change that was made, by its patch. O(1), and O(its items) if it is large.
  mutating func note(_ patch: [UInt8]) {
    let bytes =
      patch.count <= Self.largeCount
      ? patch.count &* Self.weight : patch.withUnsafeBytes { Self.cost(of: $0) }
    surplus &-= bytes
    takenMeanwhile &+= bytes
  }

  /// What it takes to decode bytes and to do what they say, about. O(the items).
  ///
  /// The bytes travel on as a patch, to the journal and to each scope, and the snapshot grows by
  /// them. Small containers take more than other items do.
  static func cost(of bytes: UnsafeRawBufferPointer) -> Int {
    if bytes.count <= largeCount { return (2 * weight + 7) * bytes.count }
    var estimate = MemoryEstimate()
    var decoder = CBORDecoder(bytes)
    // What cannot be read to its end is no action.
    try? estimate.addValue(&decoder)
    return max(2 * weight * ItemCount.items(in: bytes) + 7 * bytes.count, 2 * estimate.bytes)
  }

  /// Whether it should be measured now. `isTime` once a second.
  func mustMeasure(isTime: Bool) -> Bool {
    !isMeasuring
      && (isTime || surplus < surplusWhenRead / 2 && surplus < surplusWhenRead - (1 << 20))
  }

  mutating func begin() {
    isMeasuring = true
    takenMeanwhile = 0
  }

  /// Take what was measured; nil where nothing limits the process. `snapshotBytes` is what encoding
  /// the state takes.
  mutating func take(_ reading: MemoryReading?, snapshotBytes: Int) {
    isMeasuring = false
    self.reading = reading
    self.snapshotBytes = snapshotBytes
    guard let reading else {
      (surplus, scarceAt) = (Self.endless, nil)
      surplusWhenRead = surplus
      return
    }
    // What was taken meanwhile may be counted twice: then it is time to measure again.
    surplusWhenRead = reading.free - snapshotBytes - reserve
    surplus = surplusWhenRead - takenMeanwhile
    scarceAt = surplus < 0 ? max(scarceAt ?? available, available) : nil
  }

  /// Take what encoding the state takes, once that has been measured.
  mutating func take(snapshotBytes: Int) {
    guard reading != nil else { return }
    surplus += self.snapshotBytes - snapshotBytes
    surplusWhenRead += self.snapshotBytes - snapshotBytes
    self.snapshotBytes = snapshotBytes
    if surplus >= 0 { scarceAt = nil }
  }

  private var available: Int { surplus + snapshotBytes + reserve }

  /// For buffers, the journal and what else comes and goes.
  private var reserve: Int { min(max((reading?.limit ?? 0) / 12, 4 << 20), 64 << 20) }

  // MARK: Refusing

  /// Whether an action of so many bytes need not be looked at. O(1).
  @inline(__always)
  func isAmple(for count: Int) -> Bool { surplus > count &* (2 * MemoryEstimate.mostPerByte) }

  /// Why an action is not done; nil if it is. `isReplacing` where what it writes is there already.
  ///
  /// What makes the state smaller is always done. Small actions that replace something, or do not
  /// say what they do, are done to the last; small ones that add something until they have used up
  /// half of the reserve.
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

  /// Why bytes are not even decoded as an action; nil if they are. What they are is not known
  /// before, and few bytes take little.
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
  /// How many items there are in the bytes of one, each of which takes memory of its own; at most
  /// so many as there are bytes. O(the items).
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
      // Of strings the contents are no items.
      if head >> 5 == 2 || head >> 5 == 3 {
        guard argument >= 0, argument <= bytes.count - offset else { return count }
        offset += argument
      }
    }
    return count
  }
}
