public import Lockstep
public import Values

/// What one peer may do: equal for peers who may do the same.
public struct Rights: Hashable, Sendable {
  public let mayConnect: Bool
  /// Whether the peer may ask about other clients and about actions, and cancel effects.
  public let mayAdminister: Bool
  /// What the peer may see of the state.
  public let view: View

  private let actions: ActionRights
  /// What may be changed because a rule says so.
  private let writes: View
  /// What may be changed because it may be seen.
  private let writesOfRead: View

  /// What these rules come to together.
  init(of rules: [Rule]) {
    mayConnect = Self.isGranted(rules.map(\.mayConnect))
    mayAdminister = Self.isGranted(rules.map(\.mayAdminister))
    actions = ActionRights(
      granting: rules.flatMap(\.act), denying: rules.flatMap(\.denyAct))
    let (read, denyRead) = (rules.flatMap(\.read), rules.flatMap(\.denyRead))
    let denyWrite = rules.flatMap(\.denyWrite)
    view = View(granting: read, denying: denyRead)
    writes = View(granting: rules.flatMap { $0.write ?? [] }, denying: denyWrite)
    // What all may be written anyway need not be written for another reason as well.
    let isImplied = writes != .everything && rules.contains { $0.write == nil && !$0.act.isEmpty }
    writesOfRead = isImplied ? View(granting: read, denying: denyRead + denyWrite) : .nothing
  }

  private static func isGranted(_ said: [Bool?]) -> Bool {
    said.contains(true) && !said.contains(false)
  }

  /// Whether nothing that the peer sends or is sent has to be looked at.
  public var isUnrestricted: Bool { mayAdminister && mayDoAll }

  /// Whether the peer may see everything and send every action, to everywhere.
  private var mayDoAll: Bool { view == .everything && mayWriteAll && actions.isAll }

  private var mayWriteAll: Bool { writes == .everything || writesOfRead == .everything }

  /// Whether the peer may send actions of this name.
  public func mayAct(_ name: String) -> Bool { actions.covers(name) }

  /// Whether the peer may see all that stands at the path.
  public func mayRead(_ path: Path) -> Bool { view.permits(path) }

  /// Whether the peer may change all that stands at the path, by an action that names it.
  public func mayWrite(_ path: Path) -> Bool {
    writes.permits(path) || writesOfRead.permits(path)
  }
}

/// The names of actions that may be sent.
private struct ActionRights: Hashable, Sendable {
  private let granted: Set<ActionPattern>
  private let denied: Set<ActionPattern>

  init(granting grants: [ActionPattern], denying denials: [ActionPattern]) {
    let denied = Self.reduced(denials)
    granted = Self.reduced(grants).filter { grant in !denied.contains { $0.covers(grant) } }
    // Only a denial of something that is granted makes a difference.
    self.denied = denied.filter { [granted] in $0.meets(granted) }
  }

  /// The patterns that no other one covers.
  private static func reduced(_ patterns: [ActionPattern]) -> Set<ActionPattern> {
    let all = Set(patterns)
    return all.filter { pattern in !all.contains { $0 != pattern && $0.covers(pattern) } }
  }

  var isAll: Bool { granted.contains(.all) && denied.isEmpty }

  func covers(_ name: String) -> Bool {
    granted.contains { $0.covers(name) } && !denied.contains { $0.covers(name) }
  }
}

extension ActionPattern {
  /// Whether some name is of this pattern and of one of the others.
  fileprivate func meets(_ others: Set<ActionPattern>) -> Bool {
    // Names are a tree: two patterns share a name only if one covers the other.
    others.contains { $0.covers(self) || covers($0) }
  }
}

// MARK: Actions and their rejections

extension Rights {
  /// Why the peer may not send an action: nil if it may. An action that names paths needs the right
  /// to read those it looks at, and to write those it changes. O(the paths that it names).
  public func refusal<Action: SynchronizableAction>(
    of action: Action, in state: some Synchronizable
  ) -> Rejection? {
    if mayDoAll { return nil }
    guard let action = action as? any PathNaming else {
      return mayAct(action.name) ? nil : Self.refusal(ofName: action.name)
    }
    if let name = action.heldNames.first(where: { !mayAct($0) }) {
      return Self.refusal(ofName: name)
    }
    if view != .everything,
      let path = action.readPaths.first(where: { !mayRead(state.reach(of: $0)) })
    {
      return Rejection(.denied, "\(action.name) needs the right to read \(path)", at: path)
    }
    if !mayWriteAll,
      let path = action.writtenPaths.first(where: { !mayWrite(state.reach(of: $0)) })
    {
      return Rejection(.denied, "\(action.name) needs the right to write \(path)", at: path)
    }
    return nil
  }

  private static func refusal(ofName name: String) -> Rejection {
    Rejection(.denied, "you may not send \(name)")
  }

  /// The rejection of an action in the words that the peer may hear. What a feature says may quote
  /// the state, so unless the path that it is about may be read, only what the code means is left.
  public func redacted(_ rejection: Rejection, in state: some Synchronizable) -> Rejection {
    if view == .everything { return rejection }
    if let path = rejection.path, mayRead(state.reach(of: path)) { return rejection }
    return Rejection(rejection.code, rejection.code.sentence)
  }
}

extension Rejection.Code {
  /// What the code means, and no more.
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
  var seesAll: Bool { map { $0.view == .everything } ?? true }
}

// MARK: Reach

extension Synchronizable {
  /// The part of a path that leads through fields, maps and objects: up to the first array or
  /// enumeration, whose contents are seen and guarded as one. O(the keys squared).
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

/// Finds out whether paths end at what stands somewhere.
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
