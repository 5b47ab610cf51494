import CBOR
import Values

/// Walks two schemas side by side and makes the nodes of a translation.
struct TranslationPlanner {
  /// The node of everything whose bytes stay as they are.
  static let copy = 0

  private let source: Schema
  /// Nil when the target form is names.
  private let target: Schema?
  private let root: Translation.Root
  private let toleratesOtherKinds: Bool

  private(set) var nodes = [Translation.Node(form: .copy)]
  private(set) var differences: [String] = []
  private(set) var unknownCases: [(number: UInt64, name: String)] = []
  private var losses: [Loss] = []
  private var known: [Pair: Int] = [:]
  /// Pairs of types whose members are still to be visited. It is a list, so that long schemas take
  /// no more stack.
  private var waiting: [Waiting] = []

  private struct Pair: Hashable {
    let source: String
    let target: String?
  }

  /// A part of the source that the target does not have.
  private struct Loss {
    let name: String
    /// The node of the type that has it.
    let node: Int
    /// Whether it is a field of a struct.
    let isField: Bool
  }

  private struct Waiting {
    let node: Int
    let pair: Pair
    /// The location where the pair was first encountered.
    let place: String
  }

  init(
    from source: Schema, to target: Translation.Target, root: Translation.Root,
    toleratesOtherKinds: Bool
  ) {
    self.source = source
    self.root = root
    self.toleratesOtherKinds = toleratesOtherKinds
    switch target {
    case .names: self.target = nil
    case .schema(let schema): self.target = schema
    }
  }

  var isNamed: Bool { target == nil }

  /// Make all nodes. Returns the index of the root's node.
  mutating func plan() -> Int {
    let start =
      switch root {
      case .state: node(source.state, target?.state, "state")
      case .action: node(source.action, target?.action, "action")
      }
    while let next = waiting.popLast() { resolve(next) }
    propagate()
    return start
  }

  private mutating func add(_ form: Translation.Form, isIdentity: Bool = true) -> Int {
    nodes.append(Translation.Node(form: form, isIdentity: isIdentity))
    return nodes.count - 1
  }

  // MARK: Kinds

  /// The node of a pair of kinds. `toleratesAbsence` means that the target accepts an absent value
  /// though its kind is not optional.
  private mutating func node(
    _ source: Schema.Kind, _ target: Schema.Kind?, _ place: String, toleratesAbsence: Bool = false
  ) -> Int {
    switch (source, target) {
    case (.path, nil): return add(.pointer, isIdentity: false)
    case (.bool, nil), (.integer, nil), (.unsigned, nil), (.double, nil), (.text, nil),
      (.bytes, nil), (.value, nil), (.bool, .bool), (.integer, .integer), (.unsigned, .unsigned),
      (.double, .double), (.text, .text), (.bytes, .bytes), (.value, .value), (.path, .path):
      return Self.copy
    case (.optional(let wrapped), nil):
      return add(.optional(node(wrapped, nil, place)), isIdentity: false)
    case (.optional(let first), .optional(let second)):
      return add(.optional(node(first, second, place)))
    case (_, .optional(let wrapped)): return node(source, wrapped, place)
    case (.optional(let wrapped), let target?) where toleratesAbsence:
      return add(.optional(node(wrapped, target, place)), isIdentity: false)
    case (.array(let element), nil): return add(.array(node(element, nil, place + "[]")))
    case (.array(let first), .array(let second)):
      return add(.array(node(first, second, place + "[]")))
    case (.map(let key, let value), nil):
      let isText = key == .text
      return add(
        .map(keys: isText ? .copied : .decimal, node(value, nil, place + "[]")),
        isIdentity: isText)
    case (.map(let key, let first), .map(let other, let second)) where key == other:
      return add(.map(keys: .copied, node(first, second, place + "[]")))
    case (.type(let name), nil): return node(Pair(source: name, target: nil), place)
    case (.type(let first), .type(let second)):
      return node(Pair(source: first, target: second), place)
    case (_, let target?):
      differ(place, text(source, self.source), text(target, self.target))
      return Self.copy
    }
  }

  private mutating func node(_ pair: Pair, _ place: String) -> Int {
    if let node = known[pair] { return node }
    let node = add(.copy)
    known[pair] = node
    waiting.append(Waiting(node: node, pair: pair, place: place))
    return node
  }

  // MARK: Types

  private mutating func resolve(_ item: Waiting) {
    guard let first = source.types[item.pair.source] else {
      return note("\(item.place): the schema has no type \(item.pair.source)")
    }
    let second = item.pair.target.flatMap { target?.types[$0] }
    if let name = item.pair.target, second == nil {
      return note("\(item.place): the schema has no type \(name)")
    }
    switch (first, second) {
    case (.structure(let fields), nil): nameFields(fields, item)
    case (.structure(let fields), .structure(let others)): match(fields, others, item)
    case (.enumeration(let cases), nil): nameCases(cases, item)
    case (.enumeration(let cases), .enumeration(let others)): match(cases, others, item)
    case (.structure, .enumeration):
      differ(item.place, "struct \(item.pair.source)", "enum \(item.pair.target ?? "")")
    case (.enumeration, .structure):
      differ(item.place, "enum \(item.pair.source)", "struct \(item.pair.target ?? "")")
    }
  }

  private mutating func nameFields(_ fields: [Schema.Field], _ item: Waiting) {
    let plans = fields.map { field in
      Translation.FieldPlan(
        id: field.id, target: .text(field.name),
        node: node(field.kind, nil, "\(item.place).\(field.name)"), becomesDefault: false)
    }
    nodes[item.node] = .init(form: .structure(plans), isIdentity: false)
  }

  private mutating func match(
    _ fields: [Schema.Field], _ others: [Schema.Field], _ item: Waiting
  ) {
    var node = Translation.Node(form: .copy)
    func unknown(_ field: Schema.Field) -> Translation.FieldPlan {
      node.isIdentity = false
      node.isLossless = false
      losses.append(Loss(name: "\(item.place).\(field.name)", node: item.node, isField: true))
      return .init(id: field.id, target: nil, node: Self.copy, becomesDefault: false)
    }
    let plans = fields.map { field -> Translation.FieldPlan in
      guard let other = others.first(where: { String.isSame($0.name, field.name) }) else {
        return unknown(field)
      }
      let former = differences.count
      defer { if toleratesOtherKinds { differences.removeLast(differences.count - former) } }
      if other.id != field.id { node.isIdentity = false }
      let mayLack = canLack(other)
      let inner = self.node(
        field.kind, other.kind, "\(item.place).\(field.name)", toleratesAbsence: mayLack)
      if toleratesOtherKinds, differences.count > former { return unknown(field) }
      return .init(
        id: field.id, target: .integer(Int64(other.id)), node: inner,
        becomesDefault: mayLack && field.kind.isOptional && !other.kind.isOptional)
    }
    for other in others where !fields.contains(where: { String.isSame($0.name, other.name) }) {
      node.isIdentity = false
      requireDispensable(other, item.place, other.name)
    }
    node.form = .structure(plans)
    nodes[item.node] = node
  }

  /// Whether a value of the target may lack the field.
  private func canLack(_ field: Schema.Field) -> Bool {
    switch root {
    case .state: field.hasDefault
    case .action: true
    }
  }

  private mutating func requireDispensable(
    _ field: Schema.Field, _ place: String, _ name: String
  ) {
    if field.kind.isOptional || canLack(field) { return }
    let kind = text(field.kind, target)
    note("\(place).\(name) is missing \(sides.source), and \(kind) \(sides.target)")
  }

  // MARK: Cases

  private mutating func nameCases(_ cases: [Schema.Case], _ item: Waiting) {
    let plans = cases.map { item in
      Translation.CasePlan(id: UInt64(clamping: item.id), form: Self.namedForm(item), fields: [])
    }
    let named = zip(plans, cases).map { plan, source in
      Translation.CasePlan(
        id: plan.id, form: plan.form,
        fields: source.fields.map { node($0.kind, nil, "\(item.place).\(source.name).\($0.name)") })
    }
    nodes[item.node] = .init(form: .enumeration(named), isIdentity: false)
  }

  private static func namedForm(_ item: Schema.Case) -> Translation.CaseForm {
    if item.fields.isEmpty {
      var encoder = CBOREncoder()
      encoder.encode(item.name)
      return .constant(encoder.bytes)
    }
    if item.fields.allSatisfy(\.isUnnamed) {
      return item.fields.count == 1 ? .single(item.name) : .list(item.name)
    }
    return .object(item.name, fields: item.fields.map(\.name))
  }

  private mutating func match(
    _ cases: [Schema.Case], _ others: [Schema.Case], _ item: Waiting
  ) {
    var node = Translation.Node(form: .copy)
    let fallback = others.first(where: \.isFallback)
    let plans = cases.map { first -> Translation.CasePlan in
      guard let second = others.first(where: { String.isSame($0.name, first.name) }) else {
        node.isIdentity = false
        node.isLossless = false
        return unknown(first, fallback, item)
      }
      return match(first, second, "\(item.place).\(first.name)", item.node, &node)
    }
    for other in others where !cases.contains(where: { String.isSame($0.name, other.name) }) {
      node.isIdentity = false
    }
    node.form = .enumeration(plans)
    nodes[item.node] = node
  }

  private mutating func unknown(
    _ first: Schema.Case, _ fallback: Schema.Case?, _ item: Waiting
  ) -> Translation.CasePlan {
    let id = UInt64(clamping: first.id)
    let name = "\(item.place).\(first.name)"
    guard let fallback, fallback.fields.allSatisfy({ $0.kind.isOptional || $0.hasDefault }) else {
      unknownCases.append((id, name))
      return .init(id: id, form: .unknown, fields: [])
    }
    losses.append(Loss(name: name, node: item.node, isField: false))
    var encoder = CBOREncoder()
    if !fallback.fields.isEmpty { encoder.array(1) }
    encoder.encode(fallback.id)
    return .init(id: id, form: .constant(encoder.bytes), fields: [])
  }

  private mutating func match(
    _ first: Schema.Case, _ second: Schema.Case, _ place: String, _ index: Int,
    _ node: inout Translation.Node
  ) -> Translation.CasePlan {
    var fields = [Int?](repeating: nil, count: first.fields.count)
    let slots = second.fields.enumerated().map { place, other in
      Self.partner(of: other, at: place, in: first.fields)
    }
    for (slot, other) in zip(slots, second.fields) {
      guard let slot else {
        requireDispensable(other, place, other.name)
        continue
      }
      fields[slot] = self.node(
        first.fields[slot].kind, other.kind, "\(place).\(other.name)",
        toleratesAbsence: canLack(other))
    }
    if first.id != second.id || slots != Array(first.fields.indices) { node.isIdentity = false }
    for (field, kept) in zip(first.fields, fields) where kept == nil {
      node.isLossless = false
      losses.append(Loss(name: "\(place).\(field.name)", node: index, isField: false))
    }
    let id = UInt64(clamping: first.id)
    if second.fields.isEmpty {
      var encoder = CBOREncoder()
      encoder.encode(second.id)
      return .init(id: id, form: .constant(encoder.bytes), fields: fields)
    }
    return .init(id: id, form: .numbered(id: second.id, slots: slots), fields: fields)
  }

  /// The index of the field of a case that matches `field`: by name, or by position if both are
  /// unnamed.
  private static func partner(
    of field: Schema.Field, at place: Int, in fields: [Schema.Field]
  ) -> Int? {
    if !field.isUnnamed {
      return fields.firstIndex { !$0.isUnnamed && String.isSame($0.name, field.name) }
    }
    return place < fields.count && fields[place].isUnnamed ? place : nil
  }

  // MARK: Differences

  /// The names of the two sides in messages to the client's user.
  private var sides: (source: String, target: String) {
    switch root {
    case .state: ("in the daemon", "here")
    case .action: ("here", "in the daemon")
    }
  }

  private mutating func differ(_ place: String, _ source: String, _ target: String) {
    note("\(place) is \(source) \(sides.source) and \(target) \(sides.target)")
  }

  private mutating func note(_ difference: String) {
    if differences.count < SchemaMismatch.most { differences.append(difference) }
  }

  /// A kind in words.
  private func text(_ kind: Schema.Kind, _ schema: Schema?) -> String {
    switch kind {
    case .bool: "a boolean"
    case .integer: "integer"
    case .unsigned: "unsigned integer"
    case .double: "double"
    case .text: "text"
    case .bytes: "bytes"
    case .value: "any value"
    case .path: "a path"
    case .optional(let wrapped): "optional \(text(wrapped, schema))"
    case .array(let element): "an array of \(text(element, schema))"
    case .map(let key, let value): "a map from \(text(key, schema)) to \(text(value, schema))"
    case .type(let name):
      switch schema?.types[name] {
      case .structure: "struct \(name)"
      case .enumeration: "enum \(name)"
      case nil: name
      }
    }
  }

  // MARK: Properties of nodes

  /// The names of what the target does not have: fields that can be put back, because the way to
  /// them is through structs and the entries of maps only, and the rest. O(the nodes).
  var losing: (leftOut: [String], dropped: [String]) {
    // What is inside an array or a case.
    var isAdrift = [Bool](repeating: false, count: nodes.count)
    var waiting: [Int] = []
    func drift(_ parts: [Int]) {
      for part in parts where !isAdrift[part] {
        isAdrift[part] = true
        waiting.append(part)
      }
    }
    for node in nodes where node.form.hasAdriftParts { drift(node.form.parts) }
    while let node = waiting.popLast() { drift(nodes[node].form.parts) }
    let isLeftOut = losses.map { $0.isField && !isAdrift[$0.node] }
    return (
      zip(losses, isLeftOut).filter(\.1).map(\.0.name).sorted(),
      zip(losses, isLeftOut).filter { !$0.1 }.map(\.0.name).sorted()
    )
  }

  /// A node that contains a changing node is changing, and one that contains a lossy node is lossy.
  /// O(the nodes).
  private mutating func propagate() {
    var holders = [[Int]](repeating: [], count: nodes.count)
    for (index, node) in nodes.enumerated() {
      for part in node.form.parts { holders[part].append(index) }
    }
    var changing = nodes.indices.filter { !nodes[$0].isIdentity }
    while let part = changing.popLast() {
      for holder in holders[part] where nodes[holder].isIdentity {
        nodes[holder].isIdentity = false
        changing.append(holder)
      }
    }
    var losing = nodes.indices.filter { !nodes[$0].isLossless }
    while let part = losing.popLast() {
      for holder in holders[part] where nodes[holder].isLossless {
        nodes[holder].isLossless = false
        losing.append(holder)
      }
    }
  }
}

extension Translation.Form {
  /// Whether nothing says which of the parts a value was, once the whole has changed.
  fileprivate var hasAdriftParts: Bool {
    switch self {
    case .array, .enumeration: true
    case .copy, .pointer, .optional, .map, .structure: false
    }
  }

  /// The nodes directly inside this form.
  fileprivate var parts: [Int] {
    switch self {
    case .copy, .pointer: []
    case .optional(let part), .array(let part), .map(_, let part): [part]
    case .structure(let fields): fields.map(\.node)
    case .enumeration(let cases): cases.flatMap { $0.fields.compactMap(\.self) }
    }
  }
}
