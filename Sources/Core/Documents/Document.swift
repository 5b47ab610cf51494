public import CBOR
@_exported public import JSONCoding
public import Values

/// A document: one JSON-like tree that notes its edits, so that the patch of a change costs what
/// was touched, however large the tree is.
///
/// The tree changes only through the editing methods, which work in place: a container that is
/// uniquely referenced is not copied. Each method notes the old value at the place that it touches;
/// a copy of a document carries the notes along. When a method throws, its edits so far are in the
/// notes as well, and `rollBack` undoes them.
public struct Document: Sendable {
  /// The tree as it is now. A copy is O(1).
  public internal(set) var root: Value
  /// The seed that the objects of the tree hash with.
  public internal(set) var seed: HashSeed
  var notes = EditNotes()
  /// What is known about the next edit.
  var foreseen: ForeseenEdit?
  /// Notes of former transactions that take long to release.
  private var remains = Remains()

  /// A document that holds `root`, by default an empty object, at the start of a transaction.
  public init(_ root: Value = .object(TrieMap()), seed: HashSeed = .unseeded) {
    self.root = root
    self.seed = seed
    self.root.adopt(seed: seed)
  }
}

extension Document: Measurable {
  public var measure: StateMeasure { root.measure }
}

extension Document: Equatable {
  /// Whether both hold the same tree, whatever their notes.
  public static func == (first: Document, second: Document) -> Bool { first.isSame(as: second) }
}

extension Document: Journaled {
  public func isSame(as other: Document) -> Bool { root.isSame(as: other.root) }

  /// Append the tree: a document travels as its value.
  public func encode(into encoder: inout CBOREncoder) { root.encode(into: &encoder) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    root = try Value(from: &decoder, seed: seed)
    self.seed = seed
  }

  public func encodeDifference(from old: Document, into encoder: inout CBOREncoder) -> Bool {
    root.encodeDifference(from: old.root, into: &encoder)
  }

  public func digest(seed: HashSeed) -> UInt64 { root.digest(seed: seed) }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  /// A scope of a document is the value at a path through the members of objects.
  public static func visit<V: PartVisitor>(
    _ new: Document?, _ old: Document?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    Value.visit(new?.root, old?.root, at: path, from: depth, &visitor)
  }

  /// Make the document, with its present contents, part of a state that hashes with `seed`. This
  /// begins a transaction and forgets the notes of the previous one. O(1) if the document already
  /// hashes with `seed`.
  public mutating func adopt(seed: HashSeed) {
    notes.removeAll()
    self.seed = seed
    root.adopt(seed: seed)
  }

  /// End the transaction: append the patch from its start to now. O(what was touched · log n).
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    guard !notes.isEmpty else { return false }
    if foreseen != nil, let isChanged = settleAsForeseen(into: &encoder) { return isChanged }
    if notes.areLarge { remains.add(notes) }
    return notes.take().encodePatch(to: root, into: &encoder)
  }

  /// End the transaction and restore the document that it began with. O(what was touched · log n).
  public mutating func rollBack() {
    if notes.isEmpty { return }
    notes.undo(on: &root)
    forgetNotes()
    // Does nothing, unless a patch with another seed was undone.
    root.adopt(seed: seed)
  }

  /// The old values may be the last that is left of a large tree.
  @inline(__always)
  mutating func forgetNotes() {
    if notes.areLarge { remains.add(notes) }
    notes.removeAll()
  }

  @inline(__always)
  public mutating func takeRemains() -> Remains { remains.take() }
}
