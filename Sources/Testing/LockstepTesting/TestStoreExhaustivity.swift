/// Which events a test must assert with a `TestStore`.
public enum Exhaustivity: Hashable, Sendable {
  /// Everything: every change of the state, every action received, every effect ended.
  case on
  /// Only what the test asserts. The rest may be shown, without failing the test.
  case off(showSkippedAssertions: Bool)

  /// Only what the test asserts.
  public static let off = Exhaustivity.off(showSkippedAssertions: false)
}
