public import Values

/// The reason why a query got no report, or an incomplete one: `{"error": text, "code": name}`.
///
/// The codes are in wire.md, "Reports". Programs act on the code; the text is for people.
public struct ReportError: Error, Hashable, Sendable {
  public enum Code: String, CaseIterable, Sendable {
    /// The daemon's policy does not permit the client this query.
    case denied
    /// The arguments cannot be parsed.
    case malformed
    /// There is no report of that name.
    case unknown
    /// The subject of the query does not exist.
    case absent
    /// The query or its report would exceed a limit.
    case limit
    /// The requested operation was tried and failed.
    case refused
    /// The daemon restarts, and has not finished the report. A retry helps.
    case restarting
  }

  public let code: Code
  public let text: String

  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }

  /// The error in a report; nil if the report is not an error. An error without a code, as the
  /// first daemons send it, has no other member. It counts as refused, and so does an error with an
  /// unknown code.
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
