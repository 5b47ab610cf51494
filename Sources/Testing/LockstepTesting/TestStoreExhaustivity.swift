/// How much of what happens a `TestStore` wants to see asserted.
public enum Exhaustivity: Hashable, Sendable {
  /// All of it: every change of the state, every action received, every effect ended.
  case on
  /// What the test asserts. The rest may be shown, without failing the test.
  case off(showSkippedAssertions: Bool)

  /// Only what the test asserts.
  public static let off = Exhaustivity.off(showSkippedAssertions: false)
}
