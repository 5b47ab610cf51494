import CBOR
import Wire

/// What a connection has been told about the outcomes of its client's actions.
struct Acknowledgements: Sendable {
  /// Actions up to this number are acknowledged on this connection.
  private(set) var last: UInt64 = 0
  /// Resent actions that have an outcome already: acknowledged again.
  private var repeated: ClosedRange<UInt64>?
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
    repeated =
      min(repeated?.lowerBound ?? number, number)...max(repeated?.upperBound ?? number, number)
  }

  /// Whether there is anything to acknowledge when there are outcomes through this number.
  func areDue(through last: UInt64) -> Bool { self.last < last || repeated != nil }

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
      Frame.append(to: &encoder) {
        ServerMessage.acknowledgement(acknowledgement).encode(into: &$0)
      }
    }
    if let repeated {
      // Actions that are not acknowledged yet follow below, in order.
      outcomes.forEach(
        from: repeated.lowerBound, through: min(repeated.upperBound, first - 1), into: &encoder,
        write)
      self.repeated = nil
    }
    outcomes.forEach(from: first, through: last, into: &encoder, write)
    self.last = max(self.last, last)
    return encoder.bytes.isEmpty ? nil : encoder.bytes
  }
}
