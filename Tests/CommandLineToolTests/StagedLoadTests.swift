import CBOR
import Documents
import Lockstep
import Testing
import Values

@testable import CommandLineTool

struct StagedLoadTests {
  static let document: Value = [
    "list": .array(TreeArray((0..<300).map { ["i": .integer($0), "text": "some text"] })),
    "deep": ["a": [["b": .text(String(repeating: "x", count: 900))], 1, []]],
    "a/b~c": ["": nil, "large": 18_446_744_073_709_551_615.0],
  ]

  @Test(arguments: [1 << 10, 1 << 12, 1 << 20])
  func `the parts, performed in order, build the document`(limit: Int) throws {
    var document = Document(["old": 1])
    let parts = try StagedLoad.Parts(of: Self.document, at: ["new"], limit: limit)
    for batch in parts.batches {
      var encoder = CBOREncoder()
      let action = DocumentAction.transaction(batch.actions)
      action.encode(into: &encoder)
      #expect(encoder.bytes.count <= 2 * limit)
      _ = try DocumentFeature().reduce(into: &document, action: action)
    }
    #expect(document.root == ["old": 1, "new": Self.document])
    try document.move(from: ["new"], to: .root)
    #expect(document.root == Self.document)
  }

  @Test func `a text longer than the limit is refused`() {
    #expect(throws: Failure.self) {
      try StagedLoad.Parts(of: Self.document, at: ["new"], limit: 512)
    }
  }

  @Test func `a computed size is that of the encoded form, or a little more`() {
    var encoder = CBOREncoder()
    Self.document.encode(into: &encoder)
    #expect(EncodedSize.of(Self.document) >= encoder.bytes.count)
    #expect(EncodedSize.of(Self.document) < encoder.bytes.count + 50)
  }
}
