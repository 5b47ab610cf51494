/// What an action does to the size of the state, as far as the action alone tells.
public enum ActionFootprint: Int, Comparable, Sendable {
  /// The state takes no more memory behind it: something is removed.
  case smaller
  /// The values at the paths that it writes are replaced by about as much.
  case same
  /// The state may take more.
  case larger

  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// An action that says what it does to the size of the state.
///
/// A daemon that has no memory left does only actions that make its state smaller. One that cannot
/// tell does short ones, which may be among them, for as long as it can.
public protocol FootprintTelling {
  var footprint: ActionFootprint { get }
}
