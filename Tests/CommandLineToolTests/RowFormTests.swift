import CBOR
import Documents
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

@testable import CommandLineTool

/// How `lockstep journal` shows the rows of a daemon whose state has types of its own.
@Suite struct RowFormTests {
  private let schema = TypedDaemonTests.schema

  private func run(_ number: UInt64, began: UInt64, _ schema: [UInt8]) -> JournalContents.Run {
    JournalContents.Run(
      run: JournalRun(run: number, base: began), time: Timestamp(nanoseconds: 0), began: began,
      ended: nil, schema: schema)
  }

  private var schemaBytes: [UInt8] {
    var encoder = CBOREncoder()
    schema.encode(into: &encoder)
    return encoder.bytes
  }

  private func entry(
    _ action: [UInt8]?, patch: [UInt8]?, _ answer: Acknowledgement.Outcome?
  ) -> JournalEntry {
    let size = action?.count ?? 0
    let client = ClientOrigin(connection: 3, pid: 12, uid: 1000, gid: 100, label: "me")
    let row = JournalRow(
      sequence: 7, time: Timestamp(nanoseconds: 1_000_000_000), cause: Cause(.client(client)),
      name: "todos.add", action: action.map { 0..<$0.count }, revision: 5,
      change: patch.map { JournalRow.Change(base: 4, patch: size..<(size + $0.count)) },
      answer: answer.map {
        JournalRow.Answer(session: SessionToken(high: 0xabcd << 48, low: 1), number: 9, outcome: $0)
      })
    return JournalEntry(row: row, bytes: (action ?? []) + (patch ?? []), turn: 5)
  }

  @Test func `actions and patches are shown by the names of their schema`() throws {
    let form = RowForm([run(1, began: 0, schemaBytes), run(2, began: 8, [0xff])])
    let action = try ActionJSON.payload(of: ["todos": ["add": "milk"]], schema: schema)
    // Field 2 is replaced, and key 40 of field 3 removed.
    let patch: [UInt8] = [0xa2, 2, 0x81, 0x61, 0x78, 3, 0xa1, 0x18, 40, 0xf7]
    let value = form.value(of: entry(action, patch: patch, .reduced))
    #expect(value.child("payload") == ["todos": ["add": "milk"]])
    #expect(
      value.child("patch")
        == [
          ["op": "add", "path": "/note", "value": "x"],
          ["op": "remove", "path": "/byNumber/40"],
        ])
    #expect(value.child("origin") == "client 3 (pid 12, uid 1000)")
    #expect(value.child("label") == "me")
    #expect(value.child("base") == 4)
    #expect(value.child("session") == "abcd0000…")
    #expect(value.child("number") == 9)
    #expect(value.child("outcome") == "changed")
  }

  @Test func `bytes that no schema describes are shown as bytes`() {
    let form = RowForm([run(1, began: 0, [0xff])])
    let value = form.value(of: entry([0x18, 99], patch: [0xa0], nil))
    #expect(value.child("payload") == .bytes([0x18, 99]))
    #expect(value.child("patch") == .bytes([0xa0]))
    #expect(value.child("session") == nil)
    #expect(value.child("outcome") == "changed")
    let known = RowForm([run(1, began: 0, schemaBytes)])
    #expect(
      known.value(of: entry([0x18, 99], patch: nil, nil)).child("payload") == .bytes([0x18, 99]))
  }

  @Test func `outcomes have the same words as in the log`() {
    let form = RowForm([])
    func outcome(_ outcome: Acknowledgement.Outcome?) -> Value? {
      form.value(of: entry(nil, patch: nil, outcome)).child("outcome")
    }
    #expect(outcome(nil) == "unchanged")
    #expect(outcome(.unchanged) == "unchanged")
    #expect(outcome(.swallowed) == "swallowed")
    #expect(outcome(.accepted) == "accepted")
    #expect(
      outcome(.rejected(RejectionMessage(code: 8, message: "no room", path: ["a"])))
        == "rejected: no room (at /a)")
  }
}
