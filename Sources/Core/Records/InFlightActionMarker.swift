import Wire

/// Three words of memory that outlive the process, in which the action is noted that is about to be
/// reduced: if the reducer ends the process, the next one finds there which it was.
///
/// It is no way out of the core: nothing that the server decides depends on it.
///
/// Unchecked: whoever makes one keeps the memory for as long as it is used, and only the thread that
/// has the server writes there.
public struct InFlightActionMarker: @unchecked Sendable {
  private let words: UnsafeMutablePointer<UInt64>

  public init(_ words: UnsafeMutablePointer<UInt64>) { self.words = words }

  public func note(_ action: SessionAction) {
    words[1] = action.session.high
    words[2] = action.session.low
    // Last: numbers begin with 1.
    words[0] = action.number
  }
}
