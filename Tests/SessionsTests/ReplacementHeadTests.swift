import CBOR
import Sessions
import Testing
import Values

/// An array of one item replaces a value, however its head is written.
@Suite struct ReplacementHeadTests {
  private static let todo: [UInt8] = [0xa2, 1, 0x61, 0x78, 2, 0xf5]

  @Test(arguments: [[0x81], [0x98, 1], [0x99, 0, 1], [0x9a, 0, 0, 0, 1]] as [[UInt8]])
  func `a struct and its translation take a replacement under any head`(head: [UInt8]) throws {
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
}
