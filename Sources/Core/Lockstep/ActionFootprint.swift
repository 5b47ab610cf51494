/// How an action changes the size of the state, judged from the action alone.
public enum ActionFootprint: Int, Comparable, Sendable {
  /// The action removes something: afterwards the state takes no more memory than before.
  case smaller
  /// The values at the written paths are replaced by values of about the same size.
  case same
  /// The state may grow.
  case larger

  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// An action that declares how it changes the size of the state.
///
/// A daemon that has no memory left performs only actions that make its state smaller. Where
/// actions do not declare their footprint, it performs short ones, which may be among them, for as
/// long as it can.
public protocol FootprintTelling {
  var footprint: ActionFootprint { get }
}
