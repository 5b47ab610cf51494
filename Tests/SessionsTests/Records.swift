import CBOR
import Values

/// A struct whose fields are encoded by number, as a list declares them.
protocol Record: Synchronizable {
  static var name: String { get }
  static var parts: [any RecordPart<Self>] { get }
  init()
}

/// A field of a record.
protocol RecordPart<Root>: Sendable {
  associatedtype Root
  var number: Int { get }
  func field(in schema: inout SchemaBuilder) -> Schema.Field
  func isSame(_ first: Root, _ second: Root) -> Bool
  func isAbsent(_ root: Root) -> Bool
  func encode(_ root: Root, into encoder: inout CBOREncoder)
  func encodeDifference(_ new: Root, _ old: Root, into encoder: inout CBOREncoder) -> Bool
  func decode(_ root: inout Root, _ decoder: inout CBORDecoder, _ seed: HashSeed) throws(CBORError)
  func apply(_ root: inout Root, _ decoder: inout CBORDecoder, _ seed: HashSeed) throws(CBORError)
  func adopt(_ root: inout Root, _ seed: HashSeed)
  func digest(_ root: Root, _ seed: HashSeed) -> UInt64
  func visit<V: PartVisitor>(
    _ new: Root?, _ old: Root?, at path: Path, from depth: Int, _ visitor: inout V)
}

struct Part<Root: Sendable, T: Synchronizable>: RecordPart {
  let number: Int
  let name: String
  let property: any WritableKeyPath<Root, T> & Sendable
  var hasDefault = false

  init(
    _ number: Int, _ name: String, _ property: any WritableKeyPath<Root, T> & Sendable,
    hasDefault: Bool = false
  ) {
    self.number = number
    self.name = name
    self.property = property
    self.hasDefault = hasDefault
  }

  func field(in schema: inout SchemaBuilder) -> Schema.Field {
    .init(number, name, T.schemaKind(in: &schema), hasDefault: hasDefault)
  }
  func isSame(_ first: Root, _ second: Root) -> Bool {
    first[keyPath: property].isSame(as: second[keyPath: property])
  }
  func isAbsent(_ root: Root) -> Bool { root[keyPath: property].isAbsent }
  func encode(_ root: Root, into encoder: inout CBOREncoder) {
    root[keyPath: property].encode(into: &encoder)
  }
  func encodeDifference(_ new: Root, _ old: Root, into encoder: inout CBOREncoder) -> Bool {
    new[keyPath: property].encodeDifference(from: old[keyPath: property], into: &encoder)
  }
  func decode(
    _ root: inout Root, _ decoder: inout CBORDecoder, _ seed: HashSeed
  ) throws(CBORError) {
    root[keyPath: property] = try T(from: &decoder, seed: seed)
  }
  func apply(
    _ root: inout Root, _ decoder: inout CBORDecoder, _ seed: HashSeed
  ) throws(CBORError) {
    try root[keyPath: property].apply(patch: &decoder, seed: seed)
  }
  func adopt(_ root: inout Root, _ seed: HashSeed) { root[keyPath: property].adopt(seed: seed) }
  func digest(_ root: Root, _ seed: HashSeed) -> UInt64 {
    root[keyPath: property].digest(seed: seed)
  }
  func visit<V: PartVisitor>(
    _ new: Root?, _ old: Root?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    T.visit(
      new?[keyPath: property], old?[keyPath: property], at: path, from: depth, &visitor)
  }
}

extension Record {
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: name) { schema in
      .structure(parts.map { $0.field(in: &schema) })
    }
  }

  func isSame(as other: Self) -> Bool { Self.parts.allSatisfy { $0.isSame(self, other) } }

  func encode(into encoder: inout CBOREncoder) {
    let present = Self.parts.filter { !$0.isAbsent(self) }
    encoder.map(present.count)
    for part in present {
      encoder.encode(part.number)
      part.encode(self, into: &encoder)
    }
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init()
    for _ in 0..<(try decoder.map()) {
      let number = try decoder.unsigned(as: Int.self)
      if let part = Self.parts.first(where: { $0.number == number }) {
        try part.decode(&self, &decoder, seed)
      } else {
        try decoder.skip()
      }
    }
    decoder.close()
  }

  func encodeDifference(from old: Self, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    for part in Self.parts {
      let mark = patch.open(encoder)
      encoder.encode(part.number)
      patch.close(mark, changed: part.encodeDifference(self, old, into: &encoder), &encoder)
    }
    return patch.finish(&encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try decoder.map()) {
      let number = try decoder.unsigned(as: Int.self)
      if let part = Self.parts.first(where: { $0.number == number }) {
        try part.apply(&self, &decoder, seed)
      } else {
        try decoder.skip()
      }
    }
    decoder.close()
  }

  func digest(seed: HashSeed) -> UInt64 {
    let present = Self.parts.filter { !$0.isAbsent(self) }
    let sum = present.reduce(0 as UInt64) { sum, part in
      sum
        &+ Hashing.entry(keyHash: part.number.hash(seed: seed), digest: part.digest(self, seed))
    }
    return Hashing.map(sum: sum, count: present.count)
  }

  mutating func adopt(seed: HashSeed) { for part in Self.parts { part.adopt(&self, seed) } }

  static func visit<V: PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    if depth == path.keys.count { return visitor.visit(new, old) }
    guard let part = parts.first(where: { path.keys[depth] == .integer(Int64($0.number)) }) else {
      return visitor.visitAbsent()
    }
    part.visit(new, old, at: path, from: depth + 1, &visitor)
  }
}

// MARK: A feature in two versions

/// A todo list, in its first version.
enum First {
  struct Todo: Record, Equatable {
    var title = ""
    var isDone = false
    static let name = "Todo"
    static var parts: [any RecordPart<Self>] {
      [Part(1, "title", \Self.title), Part(2, "isDone", \Self.isDone)]
    }
  }

  enum Filter: SynchronizableScalar, Equatable {
    case all
    case named(String)

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
      schema.kind(of: Self.self, named: "Filter") { _ in
        .enumeration([
          .init(0, "all"), .init(1, "named", [.init(0, "_0", .text)]),
          .init(2, "unknown", isFallback: true),
        ])
      }
    }

    func encode(into encoder: inout CBOREncoder) {
      switch self {
      case .all: encoder.encode(0)
      case .named(let name):
        encoder.array(2)
        encoder.encode(1)
        encoder.encode(name)
      case .unknown: encoder.encode(2)
      }
    }
    /// For the cases that a later version may add.
    case unknown

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      if try decoder.peekMajor() == .unsigned {
        self = try decoder.unsigned() == 0 ? .all : .unknown
        return
      }
      _ = try decoder.array()
      _ = try decoder.unsigned()
      self = .named(try decoder.text())
      decoder.close()
    }
  }

  struct State: Record, Equatable {
    var todos = SyncArray<Todo>()
    var note: String?
    var filter = Filter.all
    var counts = SyncMap<String, Int>()
    var byNumber = SyncMap<Int, Todo>()
    var old = 0
    static let name = "State"
    static var parts: [any RecordPart<Self>] {
      [
        Part(1, "todos", \Self.todos), Part(2, "note", \Self.note),
        Part(3, "filter", \Self.filter), Part(4, "counts", \Self.counts),
        Part(5, "byNumber", \Self.byNumber), Part(6, "old", \Self.old, hasDefault: true),
      ]
    }
  }
}

/// The later version: other numbers, an added field and cases, no `old`, and a `note` that is no
/// longer optional.
enum Second {
  struct Todo: Record, Equatable {
    var priority = 3
    var title = ""
    var isDone = false
    static let name = "Item"
    static var parts: [any RecordPart<Self>] {
      [
        Part(1, "priority", \Self.priority, hasDefault: true), Part(2, "title", \Self.title),
        Part(3, "isDone", \Self.isDone),
      ]
    }
  }

  enum Filter: SynchronizableScalar, Equatable {
    case done
    case all
    case named(String)
    case tagged(name: String, isExact: Bool)

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
      schema.kind(of: Self.self, named: "Filter") { _ in
        .enumeration([
          .init(0, "done", isFallback: true), .init(1, "all"),
          .init(2, "named", [.init(0, "_0", .text)]),
          .init(3, "tagged", [.init(0, "name", .text), .init(1, "isExact", .bool)]),
        ])
      }
    }

    func encode(into encoder: inout CBOREncoder) {
      switch self {
      case .done: encoder.encode(0)
      case .all: encoder.encode(1)
      case .named(let name):
        encoder.array(2)
        encoder.encode(2)
        encoder.encode(name)
      case .tagged(let name, let isExact):
        encoder.array(3)
        encoder.encode(3)
        encoder.encode(name)
        encoder.encode(isExact)
      }
    }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      if try decoder.peekMajor() == .unsigned {
        self = try decoder.unsigned() == 0 ? .done : .all
        return
      }
      _ = try decoder.array()
      if try decoder.unsigned() == 2 {
        self = .named(try decoder.text())
      } else {
        self = .tagged(name: try decoder.text(), isExact: try decoder.bool())
      }
      decoder.close()
    }
  }

  struct State: Record, Equatable {
    var filter = Filter.all
    var counts = SyncMap<String, Int>()
    var todos = SyncArray<Todo>()
    var byNumber = SyncMap<Int, Todo>()
    var note = "none"
    var owner: String?
    static let name = "Everything"
    static var parts: [any RecordPart<Self>] {
      [
        Part(1, "filter", \Self.filter), Part(2, "counts", \Self.counts),
        Part(3, "todos", \Self.todos), Part(7, "byNumber", \Self.byNumber),
        Part(8, "note", \Self.note, hasDefault: true), Part(9, "owner", \Self.owner),
      ]
    }
  }
}

func encoded(_ body: (inout CBOREncoder) -> Void) -> [UInt8] {
  var encoder = CBOREncoder()
  body(&encoder)
  return encoder.bytes
}
