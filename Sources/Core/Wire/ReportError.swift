public import Values

/// Why a query got no report, or not the whole of one: `{"error": text, "code": name}`.
///
/// Wire.md, "Reports", has the codes. A reader tells what to do by the code, a person by the text.
public struct ReportError: Error, Hashable, Sendable {
  public enum Code: String, CaseIterable, Sendable {
    /// The daemon's policy does not let the client ask for it.
    case denied
    /// The arguments cannot be understood.
    case malformed
    /// There is no report of that name.
    case unknown
    /// What was asked about is not there.
    case absent
    /// The query or its report would pass a limit.
    case limit
    /// What was asked for was tried, and failed.
    case refused
    /// The daemon restarts, and has not finished the report. Asking again helps.
    case restarting
  }

  public let code: Code
  public let text: String

  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }

  /// The error that a report tells of; nil if it is a report. One without a code, as the first
  /// daemons send it, has no other member. It counts as refused, and so does one with a code that is
  /// not known here.
  public init?(_ report: Value) {
    guard case .object(let members) = report, case .text(let text)? = members["error"],
      members.count == 1 || members["code"] != nil
    else { return nil }
    var code: Code?
    if case .text(let name)? = members["code"] { code = Code(rawValue: name) }
    self.init(code ?? .refused, text)
  }

  /// The error as a report.
  public var report: Value { ["error": .text(text), "code": .text(code.rawValue)] }
}
