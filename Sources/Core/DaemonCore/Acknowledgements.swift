import CBOR
import Wire

/// What a connection has been told about the outcomes of its client's actions.
struct Acknowledgements: Sendable {
  /// Actions up to this number are acknowledged on this connection.
  private(set) var last: UInt64 = 0
  /// Resent actions that have an outcome already: acknowledged again. A client resends them in order, so
  /// these are few ranges.
  private var repeated: [ClosedRange<UInt64>] = []
  /// Actions up to this number were announced as decided on this connection.
  private var announced: UInt64 = 0

  init(through last: UInt64 = 0) { self.last = last }

  /// Announce what is decided, before the changes are sent. Nil if it was announced already.
  mutating func announce(_ outcomes: borrowing Outcomes) -> ServerMessage? {
    guard announced < outcomes.last else { return nil }
    announced = outcomes.last
    return .decided(through: outcomes.last, revision: outcomes.lastRevision)
  }

  /// Acknowledge an action again, which was decided before it was resent.
  mutating func `repeat`(_ number: UInt64) {
    guard let last = repeated.last, last.contains(number) || number == last.upperBound + 1 else {
      if repeated.count == Self.mostRanges { joinRanges() }
      return repeated.append(number...number)
    }
    repeated[repeated.count - 1] = last.lowerBound...max(last.upperBound, number)
  }

  /// So many have been sent in any order that all between them may be acknowledged.
  private mutating func joinRanges() {
    let first = repeated.reduce(UInt64.max) { min($0, $1.lowerBound) }
    repeated = [first...repeated.reduce(first) { max($0, $1.upperBound) }]
  }

  private static var mostRanges: Int { 1024 }

  /// Whether there is anything to acknowledge when there are outcomes through this number.
  func areDue(through last: UInt64) -> Bool { self.last < last || !repeated.isEmpty }

  /// The frames with the outcomes through `last` that are not acknowledged yet, in the version of
  /// the protocol; nil if there are none.
  mutating func take(
    _ outcomes: borrowing Outcomes, through last: UInt64, version: UInt64
  ) -> [UInt8]? {
    guard areDue(through: last) else { return nil }
    let first = self.last + 1
    // Nearly always one run of outcomes.
    var encoder = CBOREncoder(reservingCapacity: Frame.headLength + 28)
    func write(_ acknowledgement: Acknowledgement, _ encoder: inout CBOREncoder) {
      var acknowledgement = acknowledgement
      if version < 2 { acknowledgement.sequence = nil }
      acknowledgement.appendFrame(to: &encoder)
    }
    if !repeated.isEmpty {
      // Actions that are not acknowledged yet follow below, in order.
      for range in repeated {
        outcomes.forEach(
          from: range.lowerBound, through: min(range.upperBound, first - 1), into: &encoder, write)
      }
      repeated = []
    }
    outcomes.forEach(from: first, through: last, into: &encoder, write)
    self.last = max(self.last, last)
    return encoder.bytes.isEmpty ? nil : encoder.bytes
  }
}
