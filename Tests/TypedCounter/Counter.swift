// swift-format-ignore-file
// What the macros make of TypedCounterTests.swift. Write it anew:
// LOCKSTEP_WRITE_EXPANSIONS=1 swift test --filter TypedCounterTests

import Lockstep

struct Counter: Reducer {
  struct State: Equatable {
    var count = 0
  }

  enum Action: Equatable, Sendable {
    case increment

    func isSame(as other: Self) -> Bool {
      switch (self, other) {
      case (.increment, .increment):
        return true
      }
    }

    func encode(into encoder: inout CBOR.CBOREncoder) {
      switch self {
      case .increment:
        encoder.encode(0)
      }
    }

    init(from decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) throws(CBOR.CBORError) {
      var item = try Values.CaseDecoder(&decoder)
      switch item.number {
      case 0:
        self = .increment
      default:
        throw item.unknown
      }
      try item.finish(&decoder)
    }

    static func schemaKind(in schema: inout Values.SchemaBuilder) -> Values.Schema.Kind {
      schema.kind(of: Self.self, named: "Counter.Action") { schema in
        var cases: [Values.Schema.Case] = []
        cases.append(.init(0, "increment"))
        return .enumeration(cases)
      }
    }

    struct AllCasePaths: Sendable {
      var increment: Lockstep.CasePath<Action, Void> {
        .init(
          embed: { _ in
            .increment
          },
          extract: {
            guard case .increment = $0 else {
              return nil
            }
            return ()
          })
      }
    }

    static var allCasePaths: AllCasePaths {
      .init()
    }

    var name: String {
      switch self {
      case .increment:
        return "increment"
      }
    }
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .increment: state.count += 1
    }
    return .none
  }
}

extension Counter.State: ObservableState {
  func isSame(as other: Self) -> Bool {
    if !self.count.isSame(as: other.count) {
      return false
    }
    return true
  }

  func prefetchStorage() {
    Values.StructureCoding.prefetchStorage(of: self.count)
  }

  func encode(into encoder: inout CBOR.CBOREncoder) {
    var count = 0
    count += Values.StructureCoding.presence(of: self.count)
    encoder.map(count)
    Values.StructureCoding.encode(0, self.count, into: &encoder)
  }

  init(from decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) throws(CBOR.CBORError) {
    var fields = try Values.FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      switch number {
      case 0:
        try Values.StructureCoding.decode(&self.count, from: &decoder, seed: seed)
      default:
        try decoder.skip()
      }
    }
  }

  func encodeDifference(from old: Self, into encoder: inout CBOR.CBOREncoder) -> Bool {
    var patch = Values.PatchMap(in: &encoder)
    Values.StructureCoding.difference(0, self.count, old.count, &patch, &encoder)
    return patch.finish(&encoder)
  }

  mutating func apply(patch decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) throws(CBOR.CBORError) {
    if let value = try Self.replacement(from: &decoder, seed: seed) {
      self = value
      return
    }
    let count = try Values.StructureCoding.openPatch(&decoder)
    for _ in 0 ..< count {
      switch try decoder.unsigned() {
      case 0:
        try Values.StructureCoding.apply(&self.count, patch: &decoder, seed: seed)
      default:
        try decoder.skip()
      }
    }
    decoder.close()
  }

  func digest(seed: Values.HashSeed) -> UInt64 {
    var digest = Values.FieldDigest(seed: seed)
    digest.add(0, self.count)
    return digest.finish()
  }

  mutating func adopt(seed: Values.HashSeed) {
    Values.StructureCoding.adopt(&self.count, seed: seed)
  }

  static var holdsCollections: Bool {
    if Values.StructureCoding.holdsCollections({ (state: Self) in
        state.count
      }) {
      return true
    }
    return false
  }

  static func schemaKind(in schema: inout Values.SchemaBuilder) -> Values.Schema.Kind {
    schema.kind(of: Self.self, named: "Counter.State") { schema in
      var fields: [Values.Schema.Field] = []
      fields.append(schema.field(0, "count", \Self.count, hasDefault: true))
      return .structure(fields)
    }
  }

  static func visit<V: Values.PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Values.Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else {
      return visitor.visit(new, old)
    }
    switch Values.StructureCoding.field(path, depth) {
    case 0:
      Values.StructureCoding.visit(
        new?.count, old?.count, at: path, from: depth + 1, &visitor)
    default:
      visitor.visitAbsent()
    }
  }

  static let fields: [Lockstep.StateField<Self>] = {
    var fields: [Lockstep.StateField<Self>] = []
    fields.append(Lockstep.StateField(0, "count", \Self.count))
    return fields
  }()

  static var initialValue: Self? {
    Self(_defaults: ())
  }

  mutating func resetEphemeral() {
    self = Self(_resetting: self)
  }

  private init(_resetting other: Self) {
    var _count = other.count
    Lockstep.EphemeralFields.reset(&_count)
    self.count = _count
  }

  private init(_defaults: Void) {
  }
}

extension Counter.Action: SynchronizableAction, SynchronizableScalar, CasePathable {

}
