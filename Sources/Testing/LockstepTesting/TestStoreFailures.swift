import CustomDump
import IssueReporting
import Lockstep

/// The source location of a call in a test.
struct SourcePlace: Sendable {
  let fileID: StaticString
  let filePath: StaticString
  let line: UInt
  let column: UInt

  init(_ fileID: StaticString, _ filePath: StaticString, _ line: UInt, _ column: UInt) {
    self.fileID = fileID
    self.filePath = filePath
    self.line = line
    self.column = column
  }

  func report(_ text: String) {
    reportIssue(text, fileID: fileID, filePath: filePath, line: line, column: column)
  }

  /// Show something without failing the test.
  func show(_ text: String) {
    for reporter in IssueReporters.current {
      reporter.expectIssue(
        text, fileID: fileID, filePath: filePath, line: line, column: column)
    }
  }
}

/// The texts of failures.
enum TestStoreFailures {
  static let unnecessaryUpdate = """
    Expected state to change, but no change occurred.

    The trailing closure made no observable modifications to state. If no change to state is \
    expected, omit the trailing closure.
    """

  static func mismatch<State>(_ expected: State, _ actual: State, isUpdated: Bool) -> String {
    let heading =
      isUpdated
      ? "A state change does not match expectation"
      : "State was not expected to change, but a change occurred"
    return "\(heading): …\n\n\(difference(expected, actual))"
  }

  static func difference<T>(_ expected: T, _ actual: T) -> String {
    if let difference = diff(expected, actual, format: .proportional) {
      return "\(indented(difference))\n\n(Expected: −, Actual: +)"
    }
    return """
      Expected:
      \(indented("\(expected)"))

      Actual:
      \(indented("\(actual)"))
      """
  }

  static func threw(_ error: any Error) -> String { "The trailing closure threw: \(error)" }

  static func mustHandle(_ actions: [some Any]) -> String {
    """
    Must handle \(actions.count) received action\(actions.count == 1 ? "" : "s") before sending an \
    action.

    Unhandled actions: \(dump(actions))
    """
  }

  static func unexpected(_ actions: [some Any]) -> String {
    """
    The store received \(actions.count) unexpected action\(actions.count == 1 ? "" : "s") by the \
    end of this test: …

    Unhandled actions: \(dump(actions))
    """
  }

  static func skipped(_ actions: [some Any]) -> String {
    """
    \(actions.count) received action\(actions.count == 1 ? " was" : "s were") skipped:

    \(indented(dump(actions)))
    """
  }

  static func neverReceived(_ action: some Any) -> String {
    """
    Expected to receive the following action, but didn't: …

    \(indented(dump(action)))
    """
  }

  static func noneReceived(_ what: String, _ timeout: Duration, running: [RunningEffect]) -> String
  {
    let reason =
      running.isEmpty
      ? """
      There are no in-flight effects that could deliver this action. Could the effect you expected \
      to deliver this action have been cancelled?
      """
      : """
      There are effects in-flight: \(names(running)). If the effect that delivers this action uses \
      a clock, advance the test's clock ("await store.clock.advance(by:)") so that it may go on.
      """
    return "Expected to receive \(what), but received none\(after(timeout)).\n\n\(reason)"
  }

  static func unexpectedlyReceived(_ difference: String, comesLater: Bool) -> String {
    "Received unexpected action\(comesLater ? " before this one" : ""): …\n\n\(difference)"
  }

  static func stillRunning(_ effect: RunningEffect) -> String {
    """
    An effect returned for this action is still running. It must complete before the end of the \
    test. …

    Action: \(effect.action)
    Effect: \(effect.name) (\(effect.place))

    To fix, see to it that the effect completes: advance the test's clock, cancel the effect, or, \
    if it only needs a little time, "await store.finish()".
    """
  }

  static func stillInFlight(_ timeout: Duration, _ running: [RunningEffect]) -> String {
    """
    Expected effects to finish, but there are still effects in-flight\(after(timeout)): \
    \(names(running)).
    """
  }

  static func taskStillInFlight(_ timeout: Duration) -> String {
    "Expected task to finish, but it is still in-flight\(after(timeout))."
  }

  static func rejected(_ action: some Any, _ rejection: Rejection) -> String {
    """
    The action was rejected, which was not expected: \(rejection)

    \(indented(dump(action)))
    """
  }

  static func notRejected(_ action: some Any, _ expected: String) -> String {
    """
    Expected the action to be rejected, but it was not: \(expected)

    \(indented(dump(action)))
    """
  }

  static func rejectedOtherwise<T>(_ expected: T, _ actual: T) -> String {
    "The action was rejected for another reason than expected: …\n\n\(difference(expected, actual))"
  }

  static func warned(_ text: String) -> String { "The store warned: \(text)" }

  static let nothingToSkip = "There were no received actions to skip."
  static let noEffectsToSkip = "There were no in-flight effects to skip."

  static func skippedEffects(_ running: [RunningEffect]) -> String {
    "\(running.count) in-flight effect\(running.count == 1 ? " was" : "s were") cancelled: "
      + "\(names(running))."
  }

  static func names(_ running: [RunningEffect]) -> String {
    running.map { "\($0.name) (returned for \($0.action))" }.joined(separator: ", ")
  }

  static func dump(_ value: some Any) -> String { String(customDumping: value) }

  private static func after(_ timeout: Duration) -> String {
    timeout > .zero ? " after \(timeout / .seconds(1)) seconds" : ""
  }

  static func indented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.isEmpty ? "" : "    \($0)" }.joined(separator: "\n")
  }
}
