public import CBOR
public import Values

/// The state of a reactor that shows another state than the one it reduces
/// (`StateTransformingReactor`). Both travel: a view connects to `shown`.
public struct TransformedState<State: Synchronizable>: Sendable {
  /// The state that mutations change.
  public internal(set) var reduced: State
  /// What `transform(state:)` makes of it.
  public internal(set) var shown: State

  /// The state of a reactor whose mutations have led to `reduced`.
  public init<R: StateTransformingReactor>(_ reduced: State, of reactor: R)
  where R.State == State {
    self.reduced = reduced
    shown = reactor.transform(state: reduced)
  }
}

extension TransformedState: Equatable where State: Equatable {}

extension TransformedState: ObservableState {
  public static var fields: [StateField<Self>] {
    [.init(0, "reduced", \.reduced), .init(1, "shown", \.shown)]
  }

  /// Nil: only a reactor can make one.
  public static var initialValue: Self? { nil }

  public mutating func resetEphemeral() {
    EphemeralFields.reset(&reduced)
    EphemeralFields.reset(&shown)
  }

  public func isSame(as other: Self) -> Bool {
    reduced.isSame(as: other.reduced) && shown.isSame(as: other.shown)
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(
      StructureCoding.presence(of: reduced) + StructureCoding.presence(of: shown))
    StructureCoding.encode(0, reduced, into: &encoder)
    StructureCoding.encode(1, shown, into: &encoder)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var (reduced, shown): (State?, State?)
    var fields = try FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      switch number {
      case 0: try StructureCoding.decode(required: &reduced, from: &decoder, seed: seed)
      case 1: try StructureCoding.decode(required: &shown, from: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    let (start, name) = (fields.start, "TransformedState")
    self.reduced = try StructureCoding.required(reduced, name, "reduced", at: start)
    self.shown = try StructureCoding.required(shown, name, "shown", at: start)
  }

  public func encodeDifference(from old: Self, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    StructureCoding.difference(0, reduced, old.reduced, &patch, &encoder)
    StructureCoding.difference(1, shown, old.shown, &patch, &encoder)
    return patch.finish(&encoder)
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try StructureCoding.openPatch(&decoder)) {
      switch try decoder.unsigned() {
      case 0: try reduced.apply(patch: &decoder, seed: seed)
      case 1: try shown.apply(patch: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    decoder.close()
  }

  public func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    digest.add(0, reduced)
    digest.add(1, shown)
    return digest.finish()
  }

  public mutating func adopt(seed: HashSeed) {
    reduced.adopt(seed: seed)
    shown.adopt(seed: seed)
  }

  public static var holdsCollections: Bool { State.holdsCollections }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "TransformedState<\(State.self)>") { schema in
      .structure([
        schema.field(0, "reduced", \Self.reduced), schema.field(1, "shown", \Self.shown),
      ])
    }
  }

  public static func visit<V: PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    switch StructureCoding.field(path, depth) {
    case 0:
      StructureCoding.visit(new?.reduced, old?.reduced, at: path, from: depth + 1, &visitor)
    case 1: StructureCoding.visit(new?.shown, old?.shown, at: path, from: depth + 1, &visitor)
    default: visitor.visitAbsent()
    }
  }
}
