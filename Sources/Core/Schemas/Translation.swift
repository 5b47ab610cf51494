public import CBOR
public import Values

// Theory of operation
//
// Two schemas are walked side by side from their roots, once. Every pair of kinds encountered gets
// a node that says how values of the one become values of the other: copied as they are, or taken
// apart. Nodes refer to each other by index, so that types may contain themselves; a pair of types
// has one node. Values and patches then run through the nodes, bytes to bytes.
//
// A node is an identity if its bytes, including those of everything inside it, stay the same: its
// items are copied without looking inside.

/// Translates values and patches written under one schema into another form, matched by the names
/// of fields and cases: the form of another build, or a form that people read.
///
/// Fields and values that the other side does not know are left out; a case that it does not know
/// becomes its fallback.
public struct Translation: Sendable {
  /// The form into which values are translated.
  public enum Target: Sendable {
    /// Documents: structs are objects of their fields, cases `"name"` or `{"name": fields}` as in
    /// the JSON of actions, keys of maps text, paths JSON Pointers; absent values are left out, or
    /// null where they hold a position. Bytes stay bytes.
    case names
    /// The numbers of another build.
    case schema(Schema)
  }

  /// The role of the values.
  public enum Root: Sendable {
    /// The daemon's state, on its way to a client.
    case state
    /// Actions, on their way to the daemon. It is not known here whether the daemon has defaults
    /// for missing fields, so the daemon is left to reject them.
    case action
  }

  let isNamed: Bool
  let nodes: [Node]
  let start: Int
  /// The cases that have no translation, with the names by which people know them.
  let unknownCases: [(number: UInt64, name: String)]
  /// The names of the fields of the source that the target does not have, and that can be put back
  /// later (`leftOut(of:)`).
  public let leftOut: [String]
  /// The names of the other parts of the source that the target does not have: values of cases,
  /// cases that become their fallback, and fields of what is inside an array or a case.
  public let dropped: [String]

  /// The translation between two schemas. With `toleratesOtherKinds`, a field that the target has by the
  /// same name and another kind is one that it does not have. O(the types that meet).
  public init(
    from source: Schema, to target: Target, root: Root, toleratesOtherKinds: Bool = false
  ) throws(SchemaMismatch) {
    var planner = TranslationPlanner(
      from: source, to: target, root: root, toleratesOtherKinds: toleratesOtherKinds)
    let start = planner.plan()
    if !planner.differences.isEmpty { throw SchemaMismatch(planner.differences) }
    self.start = start
    isNamed = planner.isNamed
    nodes = planner.nodes
    unknownCases = planner.unknownCases
    (leftOut, dropped) = planner.losing
  }

  /// Whether both sides have the same types with the same numbers, so that nothing is to be done.
  public var isIdentity: Bool { nodes[start].isIdentity }

  /// Whether no part of a value is lost.
  public var isLossless: Bool { nodes[start].isLossless }

  /// The text of an error about a case that the target does not have; nil for any other error.
  public func unknownCase(_ error: CBORError) -> String? {
    guard case .unknownCase(let number) = error.kind else { return nil }
    let names = names(ofCase: number)
    return names.isEmpty
      ? "a case, number \(number), that is not known here"
      : "the case \(names.joined(separator: " or ")), which is not known here"
  }

  /// The names of the cases that an `unknownCase` error may be about.
  public func names(ofCase number: UInt64) -> [String] {
    unknownCases.filter { $0.number == number }.map(\.name)
  }
}

extension Translation {
  /// Translate the bytes of a value to names, and decode the result, which nests at most `depth`
  /// deep. O(the bytes).
  package func namedValue(
    of bytes: [UInt8], depth: Int = CBORDecoder.defaultDepth
  ) throws(CBORError) -> Value {
    try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      var named = CBOREncoder()
      try value(from: &decoder, into: &named)
      return try CBORDecoder.read(named.bytes, depth: depth) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    }
  }
}

extension Translation {
  /// How values of one kind become those of another.
  struct Node: Sendable {
    var form: Form
    /// Whether bytes stay as they are.
    var isIdentity = true
    var isLossless = true
  }

  enum Form: Sendable {
    case copy
    /// A path that becomes a JSON Pointer.
    case pointer
    case optional(Int)
    case array(Int)
    /// Keys that are numbers become text if people are to read them.
    case map(keys: MapKeys, Int)
    case structure([FieldPlan])
    case enumeration([CasePlan])
  }

  enum MapKeys: Sendable {
    case copied
    case decimal
  }

  /// The translation of a field of a struct.
  struct FieldPlan: Sendable {
    let id: Int
    /// Its name or number on the other side; nil when the other side does not have it.
    let target: PathKey?
    let node: Int
    /// Whether the other side has a default for an absent value. A patch cannot express a default.
    let becomesDefault: Bool
  }

  /// The translation of a case.
  struct CasePlan: Sendable {
    let id: UInt64
    let form: CaseForm
    /// The translation of each value that the case carries, in order; nil for a dropped one.
    let fields: [Int?]
  }

  enum CaseForm: Sendable {
    /// These bytes, whatever values the case carries: for a fallback, or a case without fields.
    case constant([UInt8])
    /// The other side has neither the case nor a fallback.
    case unknown
    /// `[id, …]`: each slot is the index of the source's value for it, or nil if there is none.
    case numbered(id: Int, slots: [Int?])
    /// `{name: content}`.
    case single(String)
    /// `{name: [contents]}`.
    case list(String)
    /// `{name: {field: content, …}}`.
    case object(String, fields: [String])
  }
}

// MARK: Places

extension Translation {
  /// The place that a path leads to.
  public struct Place: Sendable {
    /// The path in the source's terms. For a path that names nothing in the source, a path that
    /// leads nowhere there either.
    public let sourcePath: Path
    /// Whether the path names something in the source.
    public let isKnown: Bool
    let node: Int
  }

  /// The place that a path in the target's terms leads to. `number` makes paths that lead nowhere
  /// differ.
  public func place(at path: Path, number: UInt64 = 0) -> Place {
    var keys: [PathKey] = []
    var node = start
    for (index, key) in path.keys.enumerated() {
      guard let (sourceKey, next) = step(from: node, by: key) else {
        // No struct has such a field, and nothing else has parts.
        keys += [.integer(-1), .integer(Int64(truncatingIfNeeded: number))]
        return Place(sourcePath: Path(keys), isKnown: false, node: TranslationPlanner.copy)
      }
      keys.append(sourceKey)
      if case .copy = nodes[next].form, next == node {
        keys += path.keys[(index + 1)...]
        return Place(sourcePath: Path(keys), isKnown: true, node: node)
      }
      node = next
    }
    return Place(sourcePath: Path(keys), isKnown: true, node: node)
  }

  /// The path in the source's terms for a path in the target's terms; nil if it names nothing in
  /// the source.
  public func sourcePath(for path: Path) -> Path? {
    let place = place(at: path)
    return place.isKnown ? place.sourcePath : nil
  }

  private func step(from node: Int, by key: PathKey) -> (PathKey, Int)? {
    switch nodes[node].form {
    case .optional(let wrapped): return step(from: wrapped, by: key)
    case .structure(let fields):
      guard let field = fields.first(where: { $0.target == key }) else { return nil }
      return (.integer(Int64(field.id)), field.node)
    case .map(.copied, let value): return (key, value)
    case .map(.decimal, let value):
      switch key {
      case .integer: return (key, value)
      case .text(let text):
        // Only the canonical digits of the number.
        guard let number = Int64(text), text == String(number) else { return nil }
        return (.integer(number), value)
      }
    case .copy:
      // A document has parts of any name; a scalar has none, and the daemon knows that, too.
      return (key, node)
    case .array, .enumeration, .pointer: return nil
    }
  }
}
