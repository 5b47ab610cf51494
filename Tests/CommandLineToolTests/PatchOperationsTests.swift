import CBOR
import Documents
import Lockstep
import Testing
import Values

@testable import CommandLineTool

struct PatchOperationsTests {
  @Test func `a rejection names the operation as the patch file does`() {
    let patch: Value = [["op": "test"], ["op": "add", "path": "/a/b"]]
    #expect(
      Patch.naming("rejected: transaction[1] (insert): no (at /a/b).", in: patch)
        == "rejected: operation 1 (add): no (at /a/b).")
    #expect(Patch.naming("rejected: no.", in: patch) == "rejected: no.")
    #expect(Patch.naming("transaction[7] (set): no", in: patch) == "operation 7: no")
  }

  static let pairs: [(Value, Value)] = [
    (["a": 1], ["a": 2, "b": [1, ["x": nil]]]),
    (["a": ["b": ["c": 1]]], ["a": ["b": [:]]]),
    ([1, 2, 3, 4, 5], [0, 1, 3, 9, 5, 6]),
    ([["x": 1], ["x": 2]], [["y": 0], ["x": 1], ["x": 3]]),
    ([[1, 2], [3]], [[1, 5, 2], []]),
    (["~/": ["": 1]], ["~/": ["": 2]]),
    (1, ["a": 1]), ([], [:]), (nil, []), ([1], 1),
  ]

  @Test(arguments: pairs)
  func `a patch written as JSON Patch has the same result as the patch`(
    before: Value, after: Value
  ) throws {
    var encoder = CBOREncoder()
    #expect(after.encodeDifference(from: before, into: &encoder))
    let operations = try PatchOperations.operations(of: encoder.bytes)
    var document = Document(before)
    _ = try DocumentFeature().reduce(
      into: &document, action: try JSONPatch.actions(from: operations))
    #expect(document.root == after)
  }

  @Test func `an absent value is a remove of the root`() throws {
    #expect(try PatchOperations.operations(of: [0xf7]) == [["op": "remove", "path": ""]])
  }

  @Test func `a malformed patch is an error`() {
    #expect(throws: CBORError.self) { try PatchOperations.operations(of: [0x83, 0, 0, 0]) }
    #expect(throws: CBORError.self) { try PatchOperations.operations(of: []) }
  }
}
