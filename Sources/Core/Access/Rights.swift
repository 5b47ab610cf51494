public import Lockstep
public import Values

/// The rights of one peer: equal for peers that may do the same.
public struct Rights: Hashable, Sendable {
  public let mayConnect: Bool
  /// Whether the peer may ask about other clients and about actions, and cancel effects.
  public let mayAdminister: Bool
  /// The part of the state that the peer may see.
  public let view: View

  private let actions: ActionRights
  /// The paths that may be changed because a rule says so.
  private let writes: View
  /// The paths that may be changed because they may be seen.
  private let impliedWrites: View

  /// The rights that these rules give together.
  init(of rules: [Rule]) {
    mayConnect = Self.isGranted(rules.map(\.mayConnect))
    mayAdminister = Self.isGranted(rules.map(\.mayAdminister))
    actions = ActionRights(
      granting: rules.flatMap(\.act), denying: rules.flatMap(\.denyAct))
    let (read, denyRead) = (rules.flatMap(\.read), rules.flatMap(\.denyRead))
    let denyWrite = rules.flatMap(\.denyWrite)
    view = View(granting: read, denying: denyRead)
    writes = View(granting: rules.flatMap { $0.write ?? [] }, denying: denyWrite)
    // Where everything may be written anyway, implied rights add nothing.
    let isImplied = writes != .everything && rules.contains { $0.write == nil && !$0.act.isEmpty }
    impliedWrites = isImplied ? View(granting: read, denying: denyRead + denyWrite) : .nothing
  }

  /// No rights.
  public static let none = Rights(of: [])

  private static func isGranted(_ said: [Bool?]) -> Bool {
    said.contains(true) && !said.contains(false)
  }

  /// Whether nothing that the peer sends or receives has to be checked.
  public var isUnrestricted: Bool { mayAdminister && mayDoAll }

  /// Whether the peer may see everything, write everything and send every action.
  private var mayDoAll: Bool { view == .everything && mayWriteAll && actions.isAll }

  private var mayWriteAll: Bool { writes == .everything || impliedWrites == .everything }

  /// Whether the peer may send actions of this name.
  public func mayAct(_ name: String) -> Bool { actions.covers(name) }

  /// Whether the peer may see everything at the path.
  public func mayRead(_ path: Path) -> Bool { view.permits(path) }

  /// Whether the peer may change everything at the path, by an action that names it. The action
  /// also needs the right to read the path.
  public func mayWrite(_ path: Path) -> Bool {
    writes.permits(path) || impliedWrites.permits(path)
  }
}

/// The names of actions that may be sent.
private struct ActionRights: Hashable, Sendable {
  private let granted: Set<ActionPattern>
  private let denied: Set<ActionPattern>

  /// O(the patterns, and the words of each).
  init(granting grants: [ActionPattern], denying denials: [ActionPattern]) {
    let (granting, denying) = (ActionPatterns(grants), ActionPatterns(denials))
    granted = granting.reduced.filter { !denying.cover($0) }
    // Only a denial of something granted makes a difference. Names are a tree: two patterns share a
    // name only if one covers the other.
    let remaining = ActionPatterns(Array(granted))
    denied = denying.reduced.filter { remaining.cover($0) || remaining.areCovered(in: $0) }
  }

  var isAll: Bool { granted.contains(.all) && denied.isEmpty }

  func covers(_ name: String) -> Bool {
    granted.contains { $0.covers(name) } && !denied.contains { $0.covers(name) }
  }
}

/// Patterns with a lookup by the names above them.
private struct ActionPatterns {
  private let all: Set<ActionPattern>
  /// The patterns above each, which cover it, and those that only lead there.
  private var ancestors: Set<ActionPattern> = []

  init(_ patterns: [ActionPattern]) {
    all = Set(patterns)
    for pattern in all { ancestors.formUnion(pattern.covering) }
  }

  /// The patterns that no other one covers.
  var reduced: Set<ActionPattern> {
    all.filter { pattern in !pattern.covering.contains { $0 != pattern && all.contains($0) } }
  }

  /// Whether one of them covers every name that the pattern covers.
  func cover(_ pattern: ActionPattern) -> Bool { pattern.covering.contains(where: all.contains) }

  /// Whether the pattern covers every name that one of them covers.
  func areCovered(in pattern: ActionPattern) -> Bool { ancestors.contains(pattern) }
}

// MARK: Actions and their rejections

extension Rights {
  /// The rejection of an action that the peer may not send; nil if it may. An action that names
  /// paths needs the right to read those that it reads, and to write those that it changes. O(the
  /// paths that it names).
  public func refusal<Action: SynchronizableAction>(
    of action: Action, in state: some Synchronizable
  ) -> Rejection? {
    missingRight(for: action, in: state).map { refusal(of: action, without: $0) }
  }

  /// The first right that the peer lacks for an action; nil if it lacks none.
  public func missingRight<Action: SynchronizableAction>(
    for action: Action, in state: some Synchronizable
  ) -> MissingRight? {
    if mayDoAll { return nil }
    guard let action = action as? any PathNaming else {
      return mayAct(action.name) ? nil : .act(action.name)
    }
    if let name = action.heldNames.first(where: { !mayAct($0) }) { return .act(name) }
    // The former value shows in the outcome of every change: unchanged, absent, of another type.
    if view != .everything,
      let path = (action.readPaths + action.writtenPaths)
        .first(where: { !mayRead(state.reach(of: $0)) })
    {
      return .read(path)
    }
    guard !mayWriteAll else { return nil }
    return action.writtenPaths.first { !mayWrite(state.reach(of: $0)) }.map { .write($0) }
  }

  /// Whether the peer lacks a right that was missing for an action. O(its path).
  public func lacks(_ right: MissingRight, in state: some Synchronizable) -> Bool {
    switch right {
    case .connect: !mayConnect
    case .act(let name): !mayAct(name)
    case .read(let path): !mayRead(state.reach(of: path))
    case .write(let path): !mayWrite(state.reach(of: path))
    }
  }

  /// The rejection for a peer that lacks a right for an action: names the right, and the path.
  public func refusal(of action: some SynchronizableAction, without right: MissingRight)
    -> Rejection
  {
    switch right {
    case .connect: Rejection(.denied, "you may not connect")
    case .act(let name): Rejection(.denied, "you may not send \(name)")
    case .read(let path):
      Rejection(.denied, "\(action.name) needs the right to read \(path)", at: path)
    case .write(let path):
      Rejection(.denied, "\(action.name) needs the right to write \(path)", at: path)
    }
  }

  /// The rejection of an action without text that the peer may not see. A feature's message may
  /// quote the state, so unless the peer may read the rejection's path, the message is replaced by
  /// the meaning of the code.
  public func redacted(_ rejection: Rejection, in state: some Synchronizable) -> Rejection {
    if view == .everything { return rejection }
    if let path = rejection.path, mayRead(state.reach(of: path)) { return rejection }
    return Rejection(rejection.code, rejection.code.sentence)
  }
}

extension Rejection.Code {
  /// The meaning of the code, without details.
  package var sentence: String {
    switch self {
    case .malformed: "the payload is not what the action carries"
    case .unknownAction: "the feature has no such action"
    case .badPath: "the path names nothing that the action could work on"
    case .wrongType: "the value there is of another type than the action needs"
    case .testFailed: "the test did not hold"
    case .numberOutOfRange: "a number would not fit its type"
    case .limit: "a limit would be passed"
    case .refused: "the feature refuses the action"
    case .denied: "you may not do this"
    default: "the action was rejected with code \(rawValue)"
    }
  }
}

extension Rights? {
  /// Whether nothing of the state is hidden.
  public var seesAll: Bool { map { $0.view == .everything } ?? true }
}

// MARK: Reach

extension Synchronizable {
  /// The part of a path that leads through fields, maps and objects: up to the first array or
  /// enumeration, whose contents are shown and protected as a whole. O(the keys squared).
  public func reach(of path: Path) -> Path {
    for depth in 0..<path.keys.count {
      let start = Path(Array(path.keys[..<depth]))
      var visitor = KindVisitor()
      Self.visit(self, nil, at: start, from: 0, &visitor)
      if visitor.isIndivisible { return start }
    }
    return path
  }
}

/// Finds out whether paths end at a value, because it is an array or an enumeration.
private struct KindVisitor: PartVisitor {
  var isIndivisible = false

  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
    if let value = new as? Value {
      if case .array = value { isIndivisible = true }
      return
    }
    var schema = SchemaBuilder()
    switch T.schemaKind(in: &schema) {
    case .array: isIndivisible = true
    case .type(let name):
      if case .enumeration? = schema.types[name] { isIndivisible = true }
    case .bool, .integer, .unsigned, .double, .text, .bytes, .value, .path, .optional, .map: break
    }
  }

  mutating func visitAbsent() {}
}
