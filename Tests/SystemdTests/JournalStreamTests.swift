import Glibc
import Testing

@testable import Systemd

@Suite struct JournalStreamTests {
  /// Calls `body` with a journal and a stream to it.
  private func withJournal(
    identifier: String? = nil, _ body: (FakeManager, JournalStream) throws -> Void
  ) throws {
    try withPath { path in
      let journal = try FakeManager(at: path)
      let ends = try pipeEnds()
      var file = stat()
      try #require(fstat(ends.numbers[0], &file) == 0)
      let stream = try #require(
        JournalStream(
          identifier: identifier, environment: ["JOURNAL_STREAM": "\(file.st_dev):\(file.st_ino)"],
          standardError: ends.numbers[0], path: path))
      try body(journal, stream)
    }
  }

  @Test func `an entry is a line for each field`() throws {
    try withJournal(identifier: "lockstepd") { journal, stream in
      try stream.send(
        priority: .information, message: "serving", fields: [("socket", "/run/a=b"), ("pid", "7")])
      #expect(
        journal.receive()?.text
          == "PRIORITY=6\nSYSLOG_IDENTIFIER=lockstepd\nMESSAGE=serving\nSOCKET=/run/a=b\nPID=7\n")
    }
  }

  @Test func `a value with a newline is sent with its length`() throws {
    try withJournal { journal, stream in
      try stream.send(priority: .error, message: "a\nb", fields: [("x", "\n"), ("y", "")])
      let expected =
        Array("PRIORITY=3\nMESSAGE\n".utf8) + [3, 0, 0, 0, 0, 0, 0, 0] + Array("a\nb\nX\n".utf8)
        + [1, 0, 0, 0, 0, 0, 0, 0] + Array("\n\nY=\n".utf8)
      #expect(journal.receive()?.bytes == expected)
    }
  }

  @Test func `an entry that is too large is sent as sealed memory`() throws {
    try withJournal { journal, stream in
      let message = String(repeating: "x", count: 1_000_000)
      try stream.send(priority: .debug, message: message)
      let datagram = try #require(journal.receive())
      #expect(datagram.bytes.isEmpty)
      let memory = try #require(datagram.descriptors.numbers.first)
      let entry = try HandOverMemory.read(memory, limit: 2_000_000)
      #expect(entry == Array("PRIORITY=7\nMESSAGE=\(message)\n".utf8))
    }
  }

  @Test func `a journal that does not read becomes an error`() throws {
    try withJournal { journal, stream in
      var error: SystemError?
      for _ in 0..<100_000 where error == nil {
        do throws(SystemError) {
          try stream.send(priority: .notice, message: "x")
        } catch let reason {
          error = reason
        }
      }
      #expect(error?.code == EAGAIN)
      #expect(journal.receive() != nil)
    }
  }

  @Test(arguments: [
    nil, "", ":", "1", "1:", ":1", "1:2:3", "a:b", "-1:2", "+1:2", "0x1:2", " 1:2",
    "99999999999999999999:1", "1:99999999999999999999", "0:0",
  ])
  func `a stream other than the journal's is not used`(stream: String?) throws {
    let ends = try pipeEnds()
    let variables = stream.map { ["JOURNAL_STREAM": $0] } ?? [:]
    #expect(
      JournalStream(
        identifier: nil, environment: Environment(variables), standardError: ends.numbers[0],
        path: "/run/systemd/journal/socket") == nil)
  }

  @Test func `a closed standard error is not used`() {
    #expect(
      JournalStream(
        identifier: nil, environment: ["JOURNAL_STREAM": "0:0"], standardError: -1, path: "/a")
        == nil)
  }

  @Test(arguments: [
    ("client", "CLIENT"), ("retry-after", "RETRY_AFTER"), ("a.b c", "A_B_C"), ("x9", "X9"),
    ("9x", "FIELD_9X"), ("_PID", "FIELD__PID"), ("", "FIELD_"), ("é", "FIELD___"),
    ("message", "FIELD_MESSAGE"), ("Priority", "FIELD_PRIORITY"), ("A\nB=c", "A_B_C"),
    (String(repeating: "n", count: 70), String(repeating: "N", count: 64)),
  ])
  func `invalid field names are made valid`(name: String, field: String) {
    #expect(JournalStream.fieldName(name) == field)
  }
}
