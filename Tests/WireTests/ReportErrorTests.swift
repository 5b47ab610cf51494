import Testing
import Values
import Wire

@Suite struct ReportErrorTests {
  @Test(arguments: ReportError.Code.allCases)
  func `a report error survives a round trip`(code: ReportError.Code) {
    let error = ReportError(code, "why")
    #expect(ReportError(error.report) == error)
    #expect(error.report == ["error": "why", "code": .text(code.rawValue)])
  }

  @Test(
    arguments: [
      ["error": "why"], ["error": "why", "code": "ofTheFuture"], ["error": "why", "code": 7],
    ] as [Value])
  func `an error without a known code is read as refused`(report: Value) {
    #expect(ReportError(report) == ReportError(.refused, "why"))
  }

  @Test func `members of later versions are ignored`() {
    let report: Value = ["error": "why", "code": "absent", "retryAfterMs": 5]
    #expect(ReportError(report) == ReportError(.absent, "why"))
  }

  @Test(
    arguments: [
      [:], ["error": 1], ["error": "why", "rows": []], ["code": "denied"], "error",
      [["error": "x"]],
    ] as [Value])
  func `a report that is no error is not read as one`(report: Value) {
    #expect(ReportError(report) == nil)
  }
}
