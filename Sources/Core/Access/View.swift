public import Values

/// What of a state a peer may see. Views that permit the same are equal.
///
/// A place is permitted when a granted pattern covers it and no denied one does. What is below a
/// denied place is not permitted, whatever is granted there.
public struct View: Hashable, Sendable {
  let root: ViewNode

  private init(_ root: ViewNode) { self.root = root }

  /// What these patterns come to. O(`PathPattern.expansion` of them all).
  public init(granting grants: [PathPattern], denying denials: [PathPattern] = []) {
    root = ViewNode(
      granting: Set(grants).map { $0.steps[...] }, denying: Set(denials).map { $0.steps[...] })
  }

  /// The view of someone who may see all.
  public static let everything = View(.everything)
  /// The view of someone who may see nothing.
  public static let nothing = View(.nothing)

  /// Whether everything that stands at the path may be seen.
  public func permits(_ path: Path) -> Bool { root.node(at: path) == .everything }

  /// Whether something that the pattern covers may be permitted; true where only the keys that are
  /// there could tell. O(its steps).
  public func meets(_ pattern: PathPattern) -> Bool {
    var node = root
    for step in pattern.steps {
      guard case .part(let part) = node else { break }
      guard case .key(let key) = step else { return true }
      node = part.entries[key] ?? part.others
    }
    return node != .nothing
  }

  /// What a subscription to the path shows; nil when nothing there may be seen.
  ///
  /// With a schema the filter knows what can stand where, and so needs fewer snapshots.
  public func filter(at path: Path, in schema: Schema? = nil) -> ViewFilter? {
    let node = root.node(at: path)
    if node == .nothing { return nil }
    guard let schema else { return ViewFilter(node) }
    return ViewFilter(node.knowing(schema.kind(at: path), in: schema))
  }
}

/// What of the value at some place may be seen.
enum ViewNode: Hashable, Sendable {
  case nothing
  case everything
  case part(ViewPart)
}

/// A place that is not seen as it is: some of what is below may be seen, and some may not.
///
/// Invariant: it differs from `nothing` and from `everything`.
final class ViewPart: Hashable, Sendable {
  /// Whether the place itself is permitted, so that a scalar there may be seen.
  let isPermitted: Bool
  /// What may stand there, as far as is known.
  let forms: ViewForms
  /// What may be seen of the entries with these keys, where that is not what may be of others.
  let entries: [PathKey: ViewNode]
  /// What may be seen of the entries with all other keys.
  let others: ViewNode
  /// Kept, for a view is asked for it with every subscription.
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

  /// The forms in which a value here may be seen, in part at least.
  var visibleForms: ViewForms { isPermitted ? [.map, .scalar] : .map }
}

/// What a value can be in its value form.
struct ViewForms: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let map = ViewForms(rawValue: 1)
  static let array = ViewForms(rawValue: 2)
  static let scalar = ViewForms(rawValue: 4)
  static let any: ViewForms = [.map, .array, .scalar]
}

extension ViewNode {
  typealias Steps = ArraySlice<PathPattern.Step>

  /// The node of a place, from what is left there of the patterns that lead there or below.
  init(isGranted: Bool = false, granting grants: [Steps], denying denials: [Steps]) {
    let isPermitted = isGranted || grants.contains(where: \.isEmpty)
    let isReached = isPermitted || !grants.isEmpty
    if !isReached || denials.contains(where: \.isEmpty) {
      self = .nothing
    } else if isPermitted && denials.isEmpty {
      self = .everything
    } else {
      // Below what is granted, further grants mean nothing.
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

  /// The node of a place, in the one form that it has.
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

  /// What may be seen at a path from here.
  func node(at path: Path) -> ViewNode {
    var node = self
    for key in path.keys {
      guard case .part(let part) = node else { return node }
      node = part.child(key)
    }
    return node
  }
}

/// Patterns by their first keys, so that many patterns are looked at once and not once for each
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

  /// What is left of the patterns that lead on behind a key, or behind one that no pattern names.
  func behind(_ key: PathKey?) -> [ViewNode.Steps] {
    guard let key, let own = behindKeys[key] else { return behindStars }
    return own + behindStars
  }
}

// MARK: Size

extension PathPattern {
  /// How many places a view of these patterns, or of some of them, may have to tell apart; `limit`
  /// when there are as many. Stars beside keys multiply: a policy should be asked before it is
  /// used.
  public static func expansion(of patterns: [PathPattern], upTo limit: Int) -> Int {
    // One that comes twice tells nothing more apart.
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
  /// The same node, with what a schema says can stand there and below; of a nil kind it says
  /// nothing.
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
      // Fields are of different kinds, so each that is among the others gets a node of its own.
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
  /// The kind of what stands at a path of the state; nil where nothing can, or nothing is known.
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

  /// What a value of a kind can be in its value form.
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
