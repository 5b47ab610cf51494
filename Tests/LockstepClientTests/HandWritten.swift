import CBOR
import Lockstep
import Values

/// A state whose conformance comes from a list of its fields, as `@ObservableState` would generate
/// it.
protocol HandWritten: ObservableState {
  init()
  static var parts: [any FieldCoding<Self>] { get }
}

protocol FieldCoding<Root>: Sendable {
  associatedtype Root
  var field: StateField<Root> { get }
  func isSame(_ first: Root, _ second: Root) -> Bool
  func presence(_ root: Root) -> Int
  func encode(_ root: Root, into encoder: inout CBOREncoder)
  func decode(
    _ root: inout Root, from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)
  func difference(
    _ new: Root, _ old: Root, _ patch: inout PatchMap, _ encoder: inout CBOREncoder)
  func apply(
    _ root: inout Root, _ decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)
  func add(_ root: Root, to digest: inout FieldDigest)
  func adopt(_ root: inout Root, seed: HashSeed)
  func schemaField(in schema: inout SchemaBuilder) -> Schema.Field
  func visit<V: PartVisitor>(
    _ new: Root?, _ old: Root?, at path: Path, from depth: Int, _ visitor: inout V)
}

struct Coded<Root, T: Synchronizable>: FieldCoding {
  let number: Int
  let name: String
  let property: any WritableKeyPath<Root, T> & Sendable

  init(_ number: Int, _ name: String, _ property: any WritableKeyPath<Root, T> & Sendable) {
    self.number = number
    self.name = name
    self.property = property
  }

  var field: StateField<Root> { StateField(number, name, property) }

  func isSame(_ first: Root, _ second: Root) -> Bool {
    first[keyPath: property].isSame(as: second[keyPath: property])
  }

  func presence(_ root: Root) -> Int { StructureCoding.presence(of: root[keyPath: property]) }

  func encode(_ root: Root, into encoder: inout CBOREncoder) {
    StructureCoding.encode(number, root[keyPath: property], into: &encoder)
  }

  func decode(
    _ root: inout Root, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    root[keyPath: property] = try T(from: &decoder, seed: seed)
  }

  func difference(
    _ new: Root, _ old: Root, _ patch: inout PatchMap, _ encoder: inout CBOREncoder
  ) {
    StructureCoding.difference(
      number, new[keyPath: property], old[keyPath: property], &patch, &encoder)
  }

  func apply(
    _ root: inout Root, _ decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try root[keyPath: property].apply(patch: &decoder, seed: seed)
  }

  func add(_ root: Root, to digest: inout FieldDigest) {
    digest.add(number, root[keyPath: property])
  }

  func adopt(_ root: inout Root, seed: HashSeed) { root[keyPath: property].adopt(seed: seed) }

  func schemaField(in schema: inout SchemaBuilder) -> Schema.Field {
    schema.field(number, name, property)
  }

  func visit<V: PartVisitor>(
    _ new: Root?, _ old: Root?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    T.visit(
      new.map { $0[keyPath: property] }, old.map { $0[keyPath: property] }, at: path, from: depth,
      &visitor)
  }
}

extension HandWritten {
  static var fields: [StateField<Self>] { parts.map { $0.field } }
  static var initialValue: Self? { Self() }

  func isSame(as other: Self) -> Bool { Self.parts.allSatisfy { $0.isSame(self, other) } }

  func encode(into encoder: inout CBOREncoder) {
    encoder.map(Self.parts.reduce(0) { $0 + $1.presence(self) })
    for part in Self.parts { part.encode(self, into: &encoder) }
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init()
    var fields = try FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      if number < UInt64(Self.parts.count) {
        try Self.parts[Int(number)].decode(&self, from: &decoder, seed: seed)
      } else {
        try decoder.skip()
      }
    }
  }

  func encodeDifference(from old: Self, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    for part in Self.parts { part.difference(self, old, &patch, &encoder) }
    return patch.finish(&encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if let value = try Self.replacement(from: &decoder, seed: seed) {
      self = value
      return
    }
    for _ in 0..<(try StructureCoding.openPatch(&decoder)) {
      let number = try decoder.unsigned()
      if number < UInt64(Self.parts.count) {
        try Self.parts[Int(number)].apply(&self, &decoder, seed: seed)
      } else {
        try decoder.skip()
      }
    }
    decoder.close()
  }

  func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    for part in Self.parts { part.add(self, to: &digest) }
    return digest.finish()
  }

  mutating func adopt(seed: HashSeed) {
    for part in Self.parts { part.adopt(&self, seed: seed) }
  }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "\(Self.self)") { schema in
      .structure(parts.map { $0.schemaField(in: &schema) })
    }
  }

  static func visit<V: PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    if depth == path.keys.count { return visitor.visit(new, old) }
    guard let number = StructureCoding.field(path, depth), parts.indices.contains(Int(number))
    else { return visitor.visitAbsent() }
    parts[Int(number)].visit(new, old, at: path, from: depth + 1, &visitor)
  }
}
