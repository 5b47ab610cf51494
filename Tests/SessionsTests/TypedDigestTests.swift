import CBOR
import Foundation
import Lockstep
import Schemas
import Testing
import Values

/// Digests of a typed state, and its form by names, as in `Protocols/vectors/digests-typed.json`.
/// With `LOCKSTEP_WRITE_VECTORS` in the environment these tests write the file.
@Suite struct TypedDigestTests {
  private static let seed = HashSeed(0x0123_4567_89ab_cdef)

  @Test func `the digests and names of typed values are those of the vectors`() throws {
    let made = try Self.file()
    try VectorText.compare(made, with: "digests-typed.json")
  }

  @Test func `a decoded value has the digest of the encoded one`() throws {
    for state in Self.states {
      var state = state.value
      state.adopt(seed: Self.seed)
      let read = try CBORDecoder.read(encoded { state.encode(into: &$0) }) {
        (decoder) throws(CBORError) in try House(from: &decoder, seed: Self.seed)
      }
      #expect(read.digest(Self.seed) == state.digest(Self.seed))
    }
  }

  private static func file() throws -> String {
    let schema = Schema(state: House.self) { _ in .bool }
    let named = Schema(state: Mode.self) { _ in .bool }
    var lines = try states.map { try vector($0.name, "House", $0.value, schema) }
    lines += try modes.map { try vector($0.name, "Mode", $0.value, named) }
    return """
      {
        "schema": "\(VectorText.hex(encoded { schema.encode(into: &$0) }))",
        "seed": "\(Digest(seed.rawValue))",
        "vectors": [
      \(lines.joined(separator: ",\n"))
        ]
      }

      """
  }

  /// `schema` has the value's type as its state.
  private static func vector(
    _ name: String, _ kind: String, _ value: some Synchronizable, _ schema: Schema
  ) throws -> String {
    var value = value
    value.adopt(seed: seed)
    let bytes = encoded { value.encode(into: &$0) }
    let translation = try Translation(from: schema, to: .names, root: .state)
    let named = try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      var encoder = CBOREncoder()
      try translation.value(from: &decoder, into: &encoder)
      return encoder.bytes
    }
    return """
          {
            "name": "\(name)",
            "kind": ["type", "\(kind)"],
            "hex": "\(VectorText.hex(bytes))",
            "digest": "\(value.digest(seed))",
            "named": "\(VectorText.hex(named))"
          }
      """
  }

  // MARK: Hashed values

  private static var modes: [(name: String, value: Mode)] {
    [
      ("a case without fields", .off), ("a case with text", .scene("evening")),
      ("a case with two fields", .timer(seconds: 90, repeats: true)),
      ("a case whose last field is absent", .labelled("a", nil)),
      ("a case that carries an array", .steps([1, 2, 3])),
      ("a case of two fields without names", .pair(1, [0, 255])),
      ("a case that carries a struct", .copied(Lamp(name: "hall", level: 0.5))),
      ("a case that carries a map in trie order", .levels(["a": 1, "b": 2, "c": 3, "d": 4])),
      (
        "a case that carries a map in the order of its keys",
        .weights(["d": 4, "c": 3, "b": 2, "a": 1])
      ),
    ]
  }

  private static var states: [(name: String, value: House)] {
    var full = House()
    full.note = "fragile"
    full.lamps = [1: Lamp(name: "hall", level: 0.5), 42: Lamp(), -7: Lamp(name: "é", level: -0.0)]
    full.order = [1, 42, -7]
    full.mode = .scene("evening")
    full.modes = [.off, .scene("x"), .labelled("a", nil), .levels(["k": 1, "j": 2])]
    full.image = [0, 255]
    full.counts = ["a": 1, "b": 2]
    full.members = ["Ann", "Bob"]
    return [("a struct, its optional field absent", House()), ("a struct of everything", full)]
  }
}

@ObservableState
struct Lamp: Equatable {
  var name = ""
  var level = 0.0
}

@ObservableState(frozen: true)
enum Mode: Equatable {
  case off
  case scene(String)
  case timer(seconds: Int, repeats: Bool)
  case labelled(String, Int?)
  case steps([Int])
  case pair(Int, [UInt8])
  case copied(Lamp)
  case levels(SyncMap<String, Int>)
  case weights([String: Int])
}

@ObservableState
struct House: Equatable {
  var note: String?
  var lamps: SyncMap<Int, Lamp> = [:]
  var order: SyncArray<Int> = []
  var mode = Mode.off
  var modes: [Mode] = []
  var image: [UInt8] = []
  var counts: [String: Int] = [:]
  var members: Set<String> = []
}
