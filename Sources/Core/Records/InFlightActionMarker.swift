import Wire

/// Words of memory that outlive the process. The action about to be reduced is noted there, and the
/// one that is foreseen beside the loop: if the reducer ends the process, the next process finds which
/// action it was, or which two it may have been.
///
/// It is no output of the core: none of the server's decisions depends on it.
///
/// Unchecked: the maker keeps the memory for as long as it is used, and only the thread that has
/// the server writes to it.
public struct InFlightActionMarker: @unchecked Sendable {
  private let words: UnsafeMutablePointer<UInt64>

  public init(_ words: UnsafeMutablePointer<UInt64>) { self.words = words }

  /// The index of the words for the action that is foreseen.
  public static let foreseenPlace = 24

  public func note(_ action: SessionAction) { note(action, at: 0) }

  /// Note the action that is foreseen from now on. There is one at a time.
  public func noteForeseen(_ action: SessionAction) { note(action, at: Self.foreseenPlace) }

  public func clearForeseen() { words[Self.foreseenPlace] = 0 }

  @inline(__always)
  private func note(_ action: SessionAction, at place: Int) {
    words[place + 1] = action.session.high
    words[place + 2] = action.session.low
    // Written last: 0 means that there is no action, and numbers begin with 1.
    words[place] = action.number
  }
}
