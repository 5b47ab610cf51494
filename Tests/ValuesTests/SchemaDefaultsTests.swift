import CBOR
import Testing
import Values

/// The defaults of actions' fields, in the schema that travels.
@Suite struct SchemaDefaultsTests {
  private func schema(default isDefault: Bool) -> Schema {
    Schema(
      state: .type("State"), action: .type("Action"),
      types: [
        "State": .structure([.init(0, "count", .integer, hasDefault: true)]),
        "Draft": .structure([
          .init(3, "title", .text), .init(4, "size", .integer, hasDefault: isDefault),
        ]),
        "Action": .enumeration([
          .init(0, "reset"),
          .init(
            2, "add",
            [
              .init(1, "_0", .array(.optional(.type("Draft")))),
              .init(2, "again", .bool, hasDefault: isDefault),
            ]),
        ]),
      ])
  }

  private func bytes(_ schema: Schema) -> [UInt8] {
    var encoder = CBOREncoder()
    schema.encode(into: &encoder)
    return encoder.bytes
  }

  private func decoded(_ bytes: [UInt8]) throws -> Schema {
    try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in try Schema(from: &decoder) }
  }

  /// The names of the fields that may be left out though they are not optional.
  private func defaults(of schema: Schema) -> [String] {
    schema.types.sorted { $0.key < $1.key }.flatMap { name, definition -> [String] in
      let fields: [Schema.Field] =
        switch definition {
        case .structure(let fields): fields
        case .enumeration(let cases): cases.flatMap(\.fields)
        }
      return fields.filter(\.hasDefault).map { "\(name).\($0.name)" }
    }
  }

  @Test func `the defaults of actions' fields travel, those of the state do not`() throws {
    let received = try decoded(bytes(schema(default: true)))
    #expect(received == schema(default: true))
    #expect(defaults(of: received) == ["Action.again", "Draft.size"])
    #expect(bytes(received) == bytes(schema(default: true)))
  }

  @Test func `a schema without them has the bytes of an earlier version`() throws {
    let (with, without) = (bytes(schema(default: true)), bytes(schema(default: false)))
    #expect(without[0] == 0xa3 && with[0] == 0xa4)
    #expect(with[1..<without.count] == without[1...])
    #expect(defaults(of: try decoded(without)) == [])
    // "defaults": {"Draft": [4], "Action": [[2, 2]]}
    let key: [UInt8] =
      [0x68] + Array("defaults".utf8) + [0xa2, 0x65] + Array("Draft".utf8) + [0x81, 4, 0x66]
      + Array("Action".utf8) + [0x81, 0x82, 2, 2]
    #expect(Array(with[without.count...]) == key)
  }

  @Test func `defaults of what does not exist are ignored, and malformed ones are errors`() throws {
    let head = bytes(schema(default: false)).dropFirst()
    let key: [UInt8] = [0x68] + Array("defaults".utf8)
    let strange = [0xa4] + head + key + [0xa2, 0x61, 0x78, 0x81, 1, 0x65] + Array("Draft".utf8)
    #expect(defaults(of: try decoded(strange + [0x82, 9, 0x82, 0, 4])) == [])
    for bad in [[0x81, 0x20], [0x81, 0x81, 1], [0x61, 0x78]] as [[UInt8]] {
      #expect(throws: CBORError.self) { try decoded(strange + bad) }
    }
  }
}
