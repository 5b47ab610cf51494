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
    words[place + Self.sealPlace] = Self.seal(action)
    // Written last: 0 means that there is no action, and numbers begin with 1.
    words[place] = action.number
  }

  /// The action that is noted in the memory of a former process; nil if there is none. Whatever else
  /// the memory contains is none.
  public static func action(in words: UnsafePointer<UInt64>, at place: Int = 0) -> SessionAction? {
    let action = SessionAction(
      session: SessionToken(high: words[place + 1], low: words[place + 2]), number: words[place])
    return action.number != 0 && words[place + sealPlace] == seal(action) ? action : nil
  }

  /// Where the seal of an action is, behind the first of its words.
  private static let sealPlace = 4

  @inline(__always)
  private static func seal(_ action: SessionAction) -> UInt64 {
    // So that words which are all equal are no action.
    (action.number ^ action.session.high &+ 1) &* 0x9E37_79B9_7F4A_7C15 ^ action.session.low
  }
}
