public import CBOR

extension SyncIdentifiedArray: Journaled {
  /// Whether both hold the same rows in the same order. O(1) where both share storage, O(what
  /// differs in storage) for arrays of one lineage, else O(n).
  @inlinable
  public func isSame(as other: SyncIdentifiedArray) -> Bool {
    order.isSame(as: other.order) && content.isSame(as: other.content)
  }

  /// Append the struct of rows and order. O(n).
  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(2)
    StructureCoding.encode(0, content, into: &encoder)
    StructureCoding.encode(1, order, into: &encoder)
  }

  /// Decode a struct of rows and order, at the start of a transaction; both must have the same ids.
  /// O(n), with one look-up for each row.
  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var rows = TrieMap<ID, Row>(seed: seed)
    var ids = TreeArray<ID>()
    var fields = try FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      switch number {
      case 0: rows = try TrieMap(from: &decoder, seed: seed)
      case 1: ids = try TreeArray(from: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    ids.adopt(seed: seed)
    try OrderCheck.label(&rows, in: ids, at: fields.start)
    self.init(content: SyncMap(rows), order: SyncArray(ids))
  }

  /// Append the patch that turns `old` into this array, from the contents and not the notes.
  /// O(changes · log n) for arrays of one lineage, else O(n).
  @inlinable
  public func encodeDifference(
    from old: SyncIdentifiedArray, into encoder: inout CBOREncoder
  ) -> Bool {
    var patch = PatchMap(in: &encoder)
    StructureCoding.difference(0, content, old.content, &patch, &encoder)
    StructureCoding.difference(1, order, old.order, &patch, &encoder)
    return patch.finish(&encoder)
  }

  /// The digest of the struct of rows and order. Costs as those of a map and an array.
  @inlinable
  public func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    digest.add(0, content)
    digest.add(1, order)
    return digest.finish()
  }

  /// Make the array, with its present contents, part of a state that hashes with `seed`. This
  /// begins a transaction and forgets the notes of the previous one. Costs as `SyncMap.adopt`.
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    content.adopt(seed: seed)
    order.adopt(seed: seed)
  }

  /// End the transaction: append the patch from its start to now. O(what was touched · log n).
  @inlinable
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    var mark = patch.open(encoder)
    encoder.encode(0)
    patch.close(mark, changed: content.settle(into: &encoder), &encoder)
    mark = patch.open(encoder)
    encoder.encode(1)
    patch.close(mark, changed: order.settle(into: &encoder), &encoder)
    return patch.finish(&encoder)
  }

  /// End the transaction and restore the array that it began with. O(what was touched · log n).
  @inlinable
  public mutating func rollBack() {
    content.rollBack()
    order.rollBack()
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "SyncIdentifiedArray") { schema in
      .structure([
        Schema.Field(
          0, "rows", SyncMap<ID, Row>.schemaKind(in: &schema), hasDefault: true),
        Schema.Field(1, "order", SyncArray<ID>.schemaKind(in: &schema), hasDefault: true),
      ])
    }
  }

  @inlinable
  public static func visit<V: PartVisitor>(
    _ new: SyncIdentifiedArray?, _ old: SyncIdentifiedArray?, at path: Path, from depth: Int,
    _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    switch StructureCoding.field(path, depth) {
    case 0: SyncMap.visit(new?.content, old?.content, at: path, from: depth + 1, &visitor)
    case 1: SyncArray.visit(new?.order, old?.order, at: path, from: depth + 1, &visitor)
    default: visitor.visitAbsent()
    }
  }
}
