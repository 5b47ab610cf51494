import CBOR
import Documents
import Lockstep
import Testing
import Values

@Suite struct DocumentActionTests {
  static let examples: [(DocumentAction, [UInt8])] = [
    (.set([.text("a")], 1), [0x83, 0, 0x81, 0x61, 0x61, 1]),
    (.merge([], nil), [0x83, 1, 0x80, 0xf6]),
    (.remove([.integer(2)]), [0x82, 2, 0x81, 2]),
    (.increment([.text("a")], by: 1), [0x82, 3, 0x81, 0x61, 0x61]),
    (.increment([.text("a")], by: 2), [0x83, 3, 0x81, 0x61, 0x61, 2]),
    (.append([], 1), [0x83, 4, 0x80, 1]),
    (.insert([], 1), [0x83, 5, 0x80, 1]),
    (.move(from: [], to: [.text("a")]), [0x83, 6, 0x80, 0x81, 0x61, 0x61]),
    (.copy(from: [], to: []), [0x83, 7, 0x80, 0x80]),
    (.test([], true), [0x83, 8, 0x80, 0xf5]),
    (.transaction([.remove([])]), [0x82, 9, 0x81, 0x82, 2, 0x80]),
    (.replace([], 1), [0x83, 10, 0x80, 1]),
  ]

  @Test(arguments: examples)
  func `an action is the array of its number and fields`(
    _ action: DocumentAction, _ payload: [UInt8]
  ) throws {
    #expect(DocumentsTests.payload(action) == payload)
    #expect(try decodedAction(payload) == action)
  }

  @Test func `the amount of an increment may be encoded as absent`() throws {
    #expect(try decodedAction([0x83, 3, 0x80, 0xf7]) == .increment([], by: 1))
  }

  @Test(arguments: 0..<50)
  func `a random action survives a round trip`(seed: Int) throws {
    var random = SeededGenerator(seed)
    let root = random.value(depth: 4)
    for _ in 0..<40 {
      let action = random.action(in: root)
      #expect(try decodedAction(payload(action)) == action)
      #expect(!action.name.isEmpty)
    }
  }

  @Test func `an unknown action number is a different error from wrong fields`() {
    #expect(throws: CBORError(.unknownCase(11), at: 0)) { try decodedAction([0x82, 11, 0x80]) }
    #expect(throws: CBORError(.unknownCase(99), at: 0)) { try decodedAction([0x18, 99]) }
    #expect(throws: CBORError(.unknownCase(12), at: 3)) {
      try decodedAction([0x82, 9, 0x81, 0x0c])
    }
  }

  @Test(arguments: [
    ([0x00] as [UInt8], "set has 2 fields, not 0, at byte 0"),
    ([0x84, 0, 0x80, 1, 1], "set has 2 fields, not 3, at byte 0"),
    ([0x82, 9, 0x81, 0x83, 2, 0x80, 1], "remove has 1 field, not 2, at byte 3"),
    ([0x81, 3], "increment has 1 or 2 fields, not 0, at byte 0"),
    ([0x80], "an action is [number, fields…], not [], at byte 0"),
    ([0x82, 2, 0x80, 0], "1 bytes after the last item, at byte 3"),
    ([0x82, 2, 0x81, 0xf6], "expected an integer, found null, at byte 3"),
  ])
  func `a payload of the wrong shape is malformed, with the offset of the fault`(
    _ payload: [UInt8], _ message: String
  ) {
    let error = #expect(throws: CBORError.self) { try decodedAction(payload) }
    #expect(error.map(Rejection.init)?.message == "malformed action: \(message)")
  }

  @Test func `nested transactions are limited by the depth of the decoder`() throws {
    func nested(_ levels: Int) -> [UInt8] {
      Array(repeating: [0x82, 9, 0x81], count: levels).flatMap { $0 } + [0x82, 2, 0x80]
    }
    #expect(throws: Never.self) { try decodedAction(nested(60)) }
    #expect(throws: CBORError.self) { try decodedAction(nested(64)) }
    #expect(throws: CBORError.self) { try decodedAction(nested(100_000)) }
  }

  @Test func `no truncation and no changed byte crashes`() {
    var random = SeededGenerator(7)
    let root = random.value(depth: 4)
    for _ in 0..<60 {
      let payload = DocumentsTests.payload(random.action(in: root))
      for length in 0..<min(payload.count, 200) {
        #expect(throws: CBORError.self) { try decodedAction(Array(payload[..<length])) }
      }
      for _ in 0..<200 {
        var changed = payload
        for _ in 0...random.below(3) {
          changed[random.below(changed.count)] = UInt8.random(in: 0...255, using: &random)
        }
        guard let action = try? decodedAction(changed) else { continue }
        var document = Document(root, seed: testSeed)
        try? reduce(action, into: &document)
      }
    }
  }
}
