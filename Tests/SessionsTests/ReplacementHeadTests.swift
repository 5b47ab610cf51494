import Access
import CBOR
import Schemas
import Testing
import Values

/// An array of one item replaces a value, whatever the width of its head.
@Suite struct ReplacementHeadTests {
  private static let todo: [UInt8] = [0xa2, 1, 0x61, 0x78, 2, 0xf5]

  static let heads: [[UInt8]] = [[0x81], [0x98, 1], [0x99, 0, 1], [0x9a, 0, 0, 0, 1]]

  @Test(arguments: heads)
  func `a struct and its translation accept a replacement with a head of any width`(
    head: [UInt8]
  ) throws {
    var todo = First.Todo()
    let patch = head + Self.todo
    try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      try todo.apply(patch: &decoder, seed: .unseeded)
    }
    #expect(todo == First.Todo(title: "x", isDone: true))

    let schema = Schema(state: First.Todo.self) { _ in .bool }
    let translation = try Translation(from: schema, to: .names, root: .state)
    let named = try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      var encoder = CBOREncoder()
      let place = translation.place(at: .root, number: 1)
      let isSaid = try translation.patch(at: place, from: &decoder, into: &encoder)
      #expect(isSaid)
      return encoder.bytes
    }
    #expect(named.first == 0x81)
    let value = try CBORDecoder.read(Array(named.dropFirst())) { (decoder) throws(CBORError) in
      try Value(from: &decoder, seed: .unseeded)
    }
    #expect(value == ["title": "x", "isDone": true])
  }

  @Test(arguments: heads)
  func `a view and a scope filter a replacement with a head of any width`(head: [UInt8]) throws {
    let object: [UInt8] = [0xa2, 0x61, 0x73, 1, 0x61, 0x61, 2]
    let patch = head + object
    let view = View(granting: [PathPattern([])], denying: [PathPattern([.key("s")])])
    let (outcome, filtered) = try #require(view.filter(at: .root)).outcome(of: patch)
    #expect(outcome == .patch)
    #expect(filtered == [0x81, 0xa1, 0x61, 0x61, 2])
    let projection = patch.withUnsafeBytes { Path(["a"]).projection(of: $0) }
    #expect(projection == .value(patch.count - 1..<patch.count))
  }
}
