import Wire

/// Three words of memory that outlive the process. The action about to be reduced is noted there:
/// if the reducer ends the process, the next process finds which action it was.
///
/// It is no output of the core: none of the server's decisions depends on it.
///
/// Unchecked: the maker keeps the memory for as long as it is used, and only the thread that has
/// the server writes to it.
public struct InFlightActionMarker: @unchecked Sendable {
  private let words: UnsafeMutablePointer<UInt64>

  public init(_ words: UnsafeMutablePointer<UInt64>) { self.words = words }

  public func note(_ action: SessionAction) {
    words[1] = action.session.high
    words[2] = action.session.low
    // Written last: 0 means that there is no action, and numbers begin with 1.
    words[0] = action.number
  }
}
