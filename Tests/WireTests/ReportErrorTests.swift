import Testing
import Values
import Wire

@Suite struct ReportErrorTests {
  @Test(arguments: ReportError.Code.allCases)
  func `an error is read as it was written`(code: ReportError.Code) {
    let error = ReportError(code, "why")
    #expect(ReportError(error.report) == error)
    #expect(error.report == ["error": "why", "code": .text(code.rawValue)])
  }

  @Test(
    arguments: [
      ["error": "why"], ["error": "why", "code": "ofTheFuture"], ["error": "why", "code": 7],
    ] as [Value])
  func `without a code that is known here it is refused`(report: Value) {
    #expect(ReportError(report) == ReportError(.refused, "why"))
  }

  @Test func `later versions may add members`() {
    let report: Value = ["error": "why", "code": "absent", "retryAfterMs": 5]
    #expect(ReportError(report) == ReportError(.absent, "why"))
  }

  @Test(
    arguments: [
      [:], ["error": 1], ["error": "why", "rows": []], ["code": "denied"], "error",
      [["error": "x"]],
    ] as [Value])
  func `a report is no error`(report: Value) {
    #expect(ReportError(report) == nil)
  }
}
