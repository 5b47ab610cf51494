public import Values

/// The part of a state that a peer may see. Views that permit the same are equal.
///
/// A path is permitted when a granted pattern covers it and no denied one does. Nothing below a
/// denied path is permitted, whatever is granted there.
public struct View: Hashable, Sendable {
  let root: ViewNode

  private init(_ root: ViewNode) { self.root = root }

  /// The view that these patterns give together. O(`PathPattern.expansion` of them all).
  public init(granting grants: [PathPattern], denying denials: [PathPattern] = []) {
    root = ViewNode(
      granting: Set(grants).map { $0.steps[...] }, denying: Set(denials).map { $0.steps[...] })
  }

  /// The view of a peer that may see everything.
  public static let everything = View(.everything)
  /// The view of a peer that may see nothing.
  public static let nothing = View(.nothing)

  /// Whether everything at the path may be seen.
  public func permits(_ path: Path) -> Bool { root.node(at: path) == .everything }

  /// Whether something that the pattern covers may be permitted; true where that depends on the
  /// keys that are present in the state. O(its steps).
  public func meets(_ pattern: PathPattern) -> Bool {
    var node = root
    for step in pattern.steps {
      guard case .part(let part) = node else { break }
      guard case .key(let key) = step else { return true }
      node = part.entries[key] ?? part.others
    }
    return node != .nothing
  }

  /// The filter of a subscription to the path; nil when nothing there may be seen.
  ///
  /// With a schema the filter knows which forms of value each path can hold, and so needs fewer
  /// snapshots.
  public func filter(at path: Path, in schema: Schema? = nil) -> ViewFilter? {
    let node = root.node(at: path)
    if node == .nothing { return nil }
    guard let schema else { return ViewFilter(node) }
    return ViewFilter(node.knowing(schema.kind(at: path), in: schema))
  }
}

/// The visible part of the value at a path.
enum ViewNode: Hashable, Sendable {
  case nothing
  case everything
  case part(ViewPart)
}

/// The node of a path that is not fully visible: some of the values below may be seen, and some may
/// not.
///
/// Invariant: it differs from `nothing` and from `everything`.
final class ViewPart: Hashable, Sendable {
  /// Whether the path itself is permitted, so that a scalar there may be seen.
  let isPermitted: Bool
  /// The forms that the value there may have, as far as is known.
  let forms: ViewForms
  /// The nodes of the entries with these keys, where they differ from `others`.
  let entries: [PathKey: ViewNode]
  /// The node of the entries with all other keys.
  let others: ViewNode
  /// Cached, because every subscription asks a view for it.
  private let hash: Int

  init(
    isPermitted: Bool, forms: ViewForms, entries: [PathKey: ViewNode], others: ViewNode
  ) {
    self.isPermitted = isPermitted
    self.forms = forms
    self.entries = entries
    self.others = others
    var hasher = Hasher()
    hasher.combine(isPermitted)
    hasher.combine(forms)
    hasher.combine(entries)
    hasher.combine(others)
    hash = hasher.finalize()
  }

  static func == (first: ViewPart, second: ViewPart) -> Bool {
    first === second
      || first.hash == second.hash && first.isPermitted == second.isPermitted
        && first.forms == second.forms && first.entries == second.entries
        && first.others == second.others
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  func child(_ key: PathKey) -> ViewNode { entries[key] ?? others }

  /// The forms in which a value here may be seen, at least in part.
  var visibleForms: ViewForms { isPermitted ? [.map, .scalar] : .map }
}

/// The forms that a value can have in its value form.
struct ViewForms: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let map = ViewForms(rawValue: 1)
  static let array = ViewForms(rawValue: 2)
  static let scalar = ViewForms(rawValue: 4)
  static let any: ViewForms = [.map, .array, .scalar]
}

extension ViewNode {
  typealias Steps = ArraySlice<PathPattern.Step>

  /// The node of a path, from the remaining steps of the patterns that lead there or below.
  init(isGranted: Bool = false, granting grants: [Steps], denying denials: [Steps]) {
    let isPermitted = isGranted || grants.contains(where: \.isEmpty)
    let isReached = isPermitted || !grants.isEmpty
    if !isReached || denials.contains(where: \.isEmpty) {
      self = .nothing
    } else if isPermitted && denials.isEmpty {
      self = .everything
    } else {
      // Below a granted path, further grants are redundant.
      self.init(isPermitted: isPermitted, below: isPermitted ? [] : grants, denials)
    }
  }

  private init(isPermitted: Bool, below grants: [Steps], _ denials: [Steps]) {
    let (grants, denials) = (PatternBranches(grants), PatternBranches(denials))
    func node(_ key: PathKey?) -> ViewNode {
      ViewNode(
        isGranted: isPermitted, granting: grants.behind(key), denying: denials.behind(key))
    }
    var entries: [PathKey: ViewNode] = [:]
    for key in grants.keys where entries[key] == nil { entries[key] = node(key) }
    for key in denials.keys where entries[key] == nil { entries[key] = node(key) }
    self.init(isPermitted: isPermitted, entries: entries, others: node(nil))
  }

  /// The node of a path, in its canonical form.
  private init(
    isPermitted: Bool, forms: ViewForms = .any, entries: [PathKey: ViewNode], others: ViewNode
  ) {
    let entries = entries.filter { $0.value != others }
    if entries.isEmpty && others == (isPermitted ? .everything : .nothing) {
      self = others
    } else {
      self = .part(
        ViewPart(isPermitted: isPermitted, forms: forms, entries: entries, others: others))
    }
  }

  /// The node at a path from here.
  func node(at path: Path) -> ViewNode {
    var node = self
    for key in path.keys {
      guard case .part(let part) = node else { return node }
      node = part.child(key)
    }
    return node
  }
}

/// Patterns grouped by their first keys, so that each pattern is visited once and not once for each
/// key.
private struct PatternBranches {
  /// The keys that patterns begin with, in their order.
  private(set) var keys: [PathKey] = []
  private var behindKeys: [PathKey: [ViewNode.Steps]] = [:]
  private var behindStars: [ViewNode.Steps] = []

  init(_ patterns: [ViewNode.Steps]) {
    for steps in patterns {
      switch steps.first {
      case .any?: behindStars.append(steps.dropFirst())
      case .key(let key)?:
        if behindKeys[key] == nil { keys.append(key) }
        behindKeys[key, default: []].append(steps.dropFirst())
      case nil: break
      }
    }
  }

  /// The remaining steps of the patterns that continue after a key; nil is a key that no pattern
  /// names.
  func behind(_ key: PathKey?) -> [ViewNode.Steps] {
    guard let key, let own = behindKeys[key] else { return behindStars }
    return own + behindStars
  }
}

// MARK: Size

extension PathPattern {
  /// How many paths a view of these patterns, or of some of them, may have to distinguish; at most
  /// `limit`. Stars beside keys multiply: check a policy before it is used.
  public static func expansion(of patterns: [PathPattern], upTo limit: Int) -> Int {
    // A duplicate distinguishes no further paths.
    expansion(of: Set(patterns).map { $0.steps[...] }, upTo: limit)
  }

  private static func expansion(of patterns: [ArraySlice<Step>], upTo limit: Int) -> Int {
    let branches = PatternBranches(patterns)
    var count = 1
    for key in [nil] + branches.keys.map(Optional.some) where count < limit {
      let below = branches.behind(key).filter { !$0.isEmpty }
      count += below.isEmpty ? 1 : expansion(of: below, upTo: limit - count)
    }
    return min(count, limit)
  }
}

// MARK: Knowing a schema

extension ViewNode {
  /// The same node, with the forms that a schema allows there and below; unchanged for a nil kind.
  func knowing(_ kind: Schema.Kind?, in schema: Schema) -> ViewNode {
    guard case .part(let part) = self, let kind else { return self }
    var entries = part.entries
    for (key, node) in part.entries {
      entries[key] = node.knowing(schema.kind(kind, at: key), in: schema)
    }
    var others = part.others
    switch kind.present {
    case .map(_, let value): others = others.knowing(value, in: schema)
    case .type(let name):
      // Fields are of different kinds, so each field among `others` gets a node of its own.
      guard case .structure(let fields)? = schema.types[name], case .part = others else { break }
      for field in fields where entries[.integer(Int64(field.id))] == nil {
        entries[.integer(Int64(field.id))] = others.knowing(field.kind, in: schema)
      }
    case .bool, .integer, .unsigned, .double, .text, .bytes, .value, .path, .optional, .array:
      break
    }
    return ViewNode(
      isPermitted: part.isPermitted, forms: schema.forms(of: kind), entries: entries,
      others: others)
  }
}

extension Schema {
  /// The kind of the value at a path of the state; nil where there can be none, or it is not known.
  public func kind(at path: Path) -> Kind? {
    var kind: Kind? = state
    for key in path.keys {
      guard let current = kind else { return nil }
      kind = self.kind(current, at: key)
    }
    return kind
  }

  fileprivate func kind(_ kind: Kind, at key: PathKey) -> Kind? {
    switch kind.present {
    case .value: return .value
    case .map(_, let value): return value
    case .type(let name):
      guard case .structure(let fields)? = types[name] else { return nil }
      return fields.first { key == .integer(Int64($0.id)) }?.kind
    case .bool, .integer, .unsigned, .double, .text, .bytes, .path, .optional, .array: return nil
    }
  }

  /// The forms that a value of a kind can have in its value form.
  fileprivate func forms(of kind: Kind) -> ViewForms {
    switch kind.present {
    case .bool, .integer, .unsigned, .double, .text, .bytes: .scalar
    case .array, .path: .array
    case .map: .map
    case .value, .optional: .any
    case .type(let name):
      switch types[name] {
      case .structure?: .map
      case .enumeration?: [.scalar, .array]
      case nil: .any
      }
    }
  }
}
