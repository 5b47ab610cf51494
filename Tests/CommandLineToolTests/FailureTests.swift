import EventLoop
import Foundation
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

@testable import CommandLineTool

struct FailureTests {
  private func failure(_ error: ClientError) throws -> Failure { try #require(Failure(error)) }

  @Test(arguments: [
    (Rejection.Code.testFailed, EventLoop.ExitStatus.differs), (.denied, .denied),
    (.badPath, .refused),
    (.wrongType, .refused), (.notDurable, .refused), (Rejection.Code(rawValue: 99), .refused),
  ])
  func `a rejection has an exit status, and keeps its code and path`(
    code: Rejection.Code, status: EventLoop.ExitStatus
  ) throws {
    let rejection = RejectionMessage(code: code.rawValue, message: "no", path: ["i"])
    let failure = try failure(.rejected(rejection))
    #expect(failure.status == status)
    #expect(
      failure.value == [
        "error": [
          "code": .text(code.name), "message": "rejected: no (at /i).", "path": "/i",
          "status": .text(status.name),
        ]
      ])
  }

  @Test func `JSON in place of a file's name is answered with how to give it`() throws {
    let failure = #expect(throws: Failure.self) {
      try File("\n[" + String(repeating: "{}, ", count: 100_000)).read()
    }
    let message = try #require(failure).message
    #expect(message.hasPrefix("there is no file '\n[{}, "))
    #expect(message.hasSuffix("name '-', as in: echo '[]' | lockstep … -"))
    #expect(message.utf8.count < 400)
    // A name, however odd, is one if something is there.
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      .path
    #expect(throws: Failure(.usage, "cannot read \(folder)/[: No such file or directory.")) {
      try File(folder + "/[").read()
    }
  }

  @Test func `a file's name is said as far as it can be one`() throws {
    let failure = #expect(throws: Failure.self) {
      try File(String(repeating: "n", count: 100_000)).read()
    }
    #expect(try #require(failure).message.utf8.count < 4200)
  }

  @Test func `a goodbye has the limit and the time after which to retry`() throws {
    var goodbye = Goodbye(
      .limit, "too many", limit: LimitBreach("connections", limit: 1, observed: 2))
    goodbye.retryAfter = 50
    let error = try failure(.closed(goodbye)).value.child("error")
    #expect(error?.child("status") == "goodbye")
    #expect(error?.child("code") == "limit")
    #expect(error?.child("limit") == ["allowed": 1, "name": "connections", "observed": 2])
    #expect(error?.child("retryAfterMs") == 50)
  }

  @Test func `a connection that is not permitted has the status denied, by whatever means`() throws
  {
    #expect(try failure(.closed(Goodbye(.denied, "no"))).status == .denied)
    #expect(try failure(.refused(.denied)).status == .denied)
    let error = LoopError(code: -EACCES, operation: "connect")
    #expect(try failure(.cannotConnect(path: "/tmp/x", error)).status == .denied)
    #expect(try failure(.refused(.memory)).status == .refused)
    #expect(try failure(.closed(Goodbye(.done, "lost"))).code == "lost")
  }

  @Test(arguments: [
    (ReportError.Code.denied, EventLoop.ExitStatus.denied), (.absent, .absent),
    (.unknown, .refused), (.limit, .refused), (.restarting, .refused),
  ])
  func `a query that fails has an exit status, and keeps its error code`(
    code: ReportError.Code, status: EventLoop.ExitStatus
  ) {
    let failure = Failure(ReportError(code, "no"))
    #expect(failure.status == status)
    #expect(failure.code == code.rawValue)
    #expect(failure.message.hasPrefix("no."))
    #expect(failure.message.contains("'administer: true'") == (code == .denied))
  }

  @Test func `the codes of report errors are those of the protocol`() throws {
    let file = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let text = try String(contentsOfFile: "/\(file)/Protocols/wire.md", encoding: .utf8)
    let section = text.components(separatedBy: "\n## ").first { $0.hasPrefix("Reports") } ?? ""
    let table = section.components(separatedBy: "| code | meaning |").last?
      .components(separatedBy: "\n\n").first
    let names = (table ?? "").matches(of: /\n\| `(\w+)` \|/).map { String($0.1) }
    #expect(names == ReportError.Code.allCases.map(\.rawValue))
  }

  @Test func `the reports are those of the protocol`() throws {
    let file = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let text = try String(contentsOfFile: "/\(file)/Protocols/wire.md", encoding: .utf8)
    let section = text.components(separatedBy: "\n## ").first { $0.hasPrefix("Reports") } ?? ""
    let table = section.components(separatedBy: "| name, arguments | answer |").last ?? ""
    let names = table.matches(of: /\n\| `([a-z.]+)` \|/).map { String($0.1) }
    #expect(names.sorted() == ReportName.list())
  }

  @Test func `the names of rejections are those of the protocol`() throws {
    let file = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let text = try String(contentsOfFile: "/\(file)/Protocols/wire.md", encoding: .utf8)
    let section = text.components(separatedBy: "\n## ").first { $0.hasPrefix("Rejections") } ?? ""
    let rows = section.matches(of: /\| (\d+) \| `(\w+)` \|/)
    #expect(rows.count == 12)
    for row in rows {
      let code = Rejection.Code(rawValue: try #require(UInt64(row.1)))
      #expect(code.name == row.2)
    }
  }
}
