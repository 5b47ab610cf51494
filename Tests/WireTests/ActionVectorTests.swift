import CBOR
import Documents
import Lockstep
import Testing
import Values

/// The actions of the document daemon, through its own decoder, encoder and reducer.
@Suite struct ActionVectorTests {
  static let file = VectorFile<ActionVector>("actions.json")

  @Test(arguments: file.vectors)
  func `an action has the effect that its vector says`(vector: ActionVector) throws {
    let seed = Self.file.hashSeed
    let action: DocumentAction
    do throws(CBORError) {
      action = try decode(bytes(vector.hex))
    } catch {
      #expect(Rejection(error).code.rawValue == vector.rejected)
      return
    }
    let before = Document(vector.before.value!, seed: seed)
    var store = StoreCore(before, reducer: DocumentFeature(), seed: seed)
    var patch = CBOREncoder()
    switch store.send(action, patch: &patch) {
    case .changed(let revision):
      #expect(revision == 1)
      #expect(store.state == Document(vector.after!.value!, seed: seed))
      let mirror = try CBORDecoder.read(patch.bytes) { decoder throws(CBORError) in
        var mirror = before
        try mirror.apply(patch: &decoder, seed: seed)
        return mirror
      }
      #expect(mirror == store.state)
    case .unchanged: #expect(before == Document(vector.after!.value!, seed: seed))
    case .swallowed, .accepted: Issue.record("a document takes no such action")
    case .rejected(let rejection):
      #expect(rejection.code.rawValue == vector.rejected, "\(rejection)")
      #expect(store.state == before)
    }
  }

  @Test(arguments: file.vectors)
  func `an action decodes to its meaning and is encoded to its bytes`(vector: ActionVector) throws {
    guard let meaning = vector.action else { return }
    let action = try decode(bytes(vector.hex))
    #expect(action == meaning.action)
    if vector.made {
      var expected = meaning.action
      expected.adopt(seed: Self.file.hashSeed)
      #expect(hex(encoded { expected.encode(into: &$0) }) == vector.hex)
    }
  }

  @Test(arguments: file.vectors)
  func `every truncation of an action is an error`(vector: ActionVector) {
    let whole = bytes(vector.hex)
    for length in 0..<whole.count {
      #expect(throws: CBORError.self) { try decode(Array(whole[..<length])) }
    }
  }

  @Test func `the schema vector is the document daemon's`() throws {
    let vector = try #require(
      MessageVector.file.vectors.first { $0.name == "schema of the document daemon" })
    let schema = DocumentFeature().schema
    #expect(hex(encoded { schema.encode(into: &$0) }) == vector.fields["schema"].string)
    #expect(Digest(schema.fingerprint).description == vector.fields["fingerprint"].string)
  }

  private func decode(_ bytes: [UInt8]) throws(CBORError) -> DocumentAction {
    try CBORDecoder.read(bytes) {
      decoder throws(CBORError) in
      try DocumentAction(from: &decoder, seed: Self.file.hashSeed)
    }
  }
}

struct ActionVector: Decodable, CustomStringConvertible {
  let name: String
  let hex: String
  /// Absent where the bytes are not a valid action.
  let action: JSON?
  let before: JSON
  /// The document after the action; absent if the action is rejected.
  let after: JSON?
  let rejected: UInt64?
  /// Whether our encoder writes these bytes.
  let made: Bool

  var description: String { name }
}

extension JSON {
  /// The action in the notation of the vectors: its name and its fields.
  fileprivate var action: DocumentAction {
    let fields = elements
    switch fields[0].string {
    case "set": return .set(fields[1].path, fields[2].value!)
    case "merge": return .merge(fields[1].path, fields[2].value!)
    case "remove": return .remove(fields[1].path)
    case "increment": return .increment(fields[1].path, by: fields[2].value!)
    case "append": return .append(fields[1].path, fields[2].value!)
    case "insert": return .insert(fields[1].path, fields[2].value!)
    case "move": return .move(from: fields[1].path, to: fields[2].path)
    case "copy": return .copy(from: fields[1].path, to: fields[2].path)
    case "test": return .test(fields[1].path, fields[2].value!)
    case "transaction": return .transaction(fields[1].elements.map(\.action))
    case "replace": return .replace(fields[1].path, fields[2].value!)
    case let other: preconditionFailure("There is no action \(other).")
    }
  }
}

extension DocumentAction {
  /// Rehashes the values in the action with a seed, so that its entries are encoded in that order.
  fileprivate mutating func adopt(seed: HashSeed) {
    func adopted(_ value: Value) -> Value {
      var value = value
      value.adopt(seed: seed)
      return value
    }
    switch self {
    case .set(let path, let value): self = .set(path, adopted(value))
    case .merge(let path, let value): self = .merge(path, adopted(value))
    case .increment, .remove, .move, .copy: break
    case .append(let path, let value): self = .append(path, adopted(value))
    case .insert(let path, let value): self = .insert(path, adopted(value))
    case .test(let path, let value): self = .test(path, adopted(value))
    case .replace(let path, let value): self = .replace(path, adopted(value))
    case .transaction(var actions):
      for index in actions.indices { actions[index].adopt(seed: seed) }
      self = .transaction(actions)
    }
  }
}
