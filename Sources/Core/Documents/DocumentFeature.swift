public import Lockstep
public import Values

/// The feature of the stock daemon: one document, and the actions that change it.
public struct DocumentFeature: Reducer {
  /// The limits on the depth of the document, and on the number of actions, the copies and the work
  /// of one action.
  public struct Limits: Hashable, Sendable {
    /// The maximum nesting depth of the document; an array counts as two levels. Patches take two
    /// levels for an array, so a document within 100 travels inside patches and messages to a
    /// decoder of the default depth, 128.
    public var maxDepth = JSON.documentDepth
    /// The maximum number of actions inside one action, those of nested transactions included.
    public var maxActions = 100_000
    /// The maximum number of bytes, approximately, that the copies of one action may add to the
    /// document: as many as its frame may have. Copies share storage, but their patch does not, and
    /// a copy of the whole into itself doubles it: without a limit, sixty of them in 368 bytes
    /// outgrow any memory.
    public var maxCopiedBytes = 16 << 20
    /// The maximum work of one action, in steps of less than a microsecond: two for each action,
    /// and one for each key of its paths.
    public var maxSteps = 1_000_000

    public init() {}
  }

  public var limits: Limits
  /// Whether it accepts all actions and does nothing.
  public let isStub: Bool

  public init(limits: Limits = Limits(), isStub: Bool = false) {
    self.limits = limits
    self.isStub = isStub
  }

  /// Change the document as the action says. After an error the edits before it are in its notes:
  /// the store rolls them back.
  public func reduce(
    into state: inout Document, action: DocumentAction
  ) throws(Rejection) -> Effect<DocumentAction> {
    if isStub { return .none }
    // A pattern, because to compare with nil copies what is there.
    if case _? = state.foreseen, try state.performForeseen(action) { return .none }
    var pass = Pass(limits)
    try reduce(into: &state, action, &pass)
    return .none
  }

  /// Perform an action to find out what it does: the places that it touches, and the rejection if it is
  /// rejected.
  func tryOut(_ action: DocumentAction, on state: inout Document) -> (TouchedPlaces, Rejection?) {
    var pass = Pass(limits)
    pass.places = TouchedPlaces()
    var rejection: Rejection?
    let ground = state.root
    do throws(Rejection) {
      try reduce(into: &state, action, &pass)
    } catch {
      rejection = error
      // Also those that it has not come to: the rights for them hold as long as the rejection does.
      action.forEach { pass.places?.note($0, in: ground) }
    }
    return (pass.places ?? TouchedPlaces(), rejection)
  }

  /// The reductions of a document depend on nothing but their arguments.
  public static var usesContext: Bool { false }

  /// One reduction: the part of the limits that is left for the rest of it, and where it has been.
  private struct Pass {
    var actions: Int
    var copiedBytes: Int
    var steps: Int
    /// Nil if they are not to be noted.
    var places: TouchedPlaces?

    init(_ limits: Limits) {
      actions = limits.maxActions
      copiedBytes = limits.maxCopiedBytes
      steps = limits.maxSteps
    }
  }

  private func reduce(
    into state: inout Document, _ action: DocumentAction, _ pass: inout Pass
  ) throws(Rejection) {
    try walk(action, &pass)
    pass.places?.note(action, in: state.root)
    switch action {
    case .set(let path, let value):
      try check(value, at: path, in: state)
      try state.set(value, at: path)
    case .merge(let path, let patch):
      try check(patch, at: path, in: state)
      try state.merge(patch, at: path)
    case .remove(let path): try state.remove(at: path)
    case .increment(let path, let amount): try state.increment(at: path, by: amount)
    case .append(let path, let value):
      try check(value, at: path, in: state, inArray: true)
      try state.append(value, at: path)
    case .insert(let path, let value):
      try check(value, at: path, in: state)
      try state.insert(value, at: path)
    case .move(let source, let target):
      try checkTransfer(from: source, to: target, in: state)
      try state.move(from: source, to: target)
    case .copy(let source, let target):
      try checkCopy(from: source, to: target, in: state, &pass)
      try checkTransfer(from: source, to: target, in: state)
      try state.copy(from: source, to: target)
    case .test(let path, let value): try state.test(value, at: path)
    case .transaction(let actions): try transact(actions, into: &state, &pass)
    case .replace(let path, let value):
      try check(value, at: path, in: state)
      try state.replace(value, at: path)
    }
  }

  private func transact(
    _ actions: [DocumentAction], into state: inout Document, _ pass: inout Pass
  ) throws(Rejection) {
    guard actions.count <= pass.actions else {
      throw Rejection(
        .limit, "a transaction may hold at most \(limits.maxActions) actions in all")
    }
    pass.actions -= actions.count
    for (index, action) in actions.enumerated() {
      do throws(Rejection) {
        try reduce(into: &state, action, &pass)
      } catch {
        var rejection = error
        // The innermost action adds its name, the transactions around it only its index.
        let inner = error.message.hasPrefix("transaction[") ? "." : " (\(action.name)): "
        rejection.message = "transaction[\(index)]\(inner)\(error.message)"
        throw rejection
      }
    }
  }

  /// Count the steps of an action, without those of the actions inside it.
  private func walk(_ action: DocumentAction, _ pass: inout Pass) throws(Rejection) {
    pass.steps -= 2
    switch action {
    case .set(let path, _), .merge(let path, _), .remove(let path), .increment(let path, _),
      .append(let path, _), .insert(let path, _), .test(let path, _), .replace(let path, _):
      pass.steps -= path.keys.count
    case .move(let from, let to), .copy(let from, let to):
      pass.steps -= from.keys.count + to.keys.count
    case .transaction: break
    }
    guard pass.steps >= 0 else {
      throw Rejection(
        .limit,
        "an action may make at most \(limits.maxSteps) steps: two for each action inside, and one "
          + "for each key of a path")
    }
  }

  /// O(the size of the copied value), as its patch is.
  private func checkCopy(
    from source: Path, to target: Path, in state: Document, _ pass: inout Pass
  ) throws(Rejection) {
    guard let value = state.root.value(at: source) else { return }
    pass.copiedBytes -= value.size(upTo: pass.copiedBytes + 1)
    guard pass.copiedBytes >= 0 else {
      throw Rejection(
        .limit, "the copies of an action may add at most \(limits.maxCopiedBytes) bytes in all",
        at: target)
    }
  }

  // MARK: Depth

  /// A scalar makes nothing deeper. O(size of the value), which came in the action.
  private func check(
    _ value: Value, at path: Path, in state: Document, inArray: Bool = false
  ) throws(Rejection) {
    let levels = value.patchLevels + (inArray ? 2 : 0)
    if levels > 0 { try check(state.root.resolve(path).levels + levels, at: path) }
  }

  /// A value that moves no deeper than it was need not be measured. O(the paths): the value has
  /// been measured before, or is now, once.
  private func checkTransfer(
    from source: Path, to target: Path, in state: Document
  ) throws(Rejection) {
    let (from, to) = (state.root.resolve(source).levels, state.root.resolve(target).levels)
    guard to > from, let value = state.root.value(at: source) else { return }
    try check(to + value.patchLevels, at: target)
  }

  private func check(_ levels: Int, at path: Path) throws(Rejection) {
    guard levels <= limits.maxDepth else {
      throw Rejection(
        .limit,
        "the document would nest deeper than \(limits.maxDepth) levels, \(JSON.countingLevels)",
        at: path)
    }
  }
}

// MARK: Schema

extension DocumentAction {
  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Action") { _ in
      .enumeration(
        Case.allCases.map { kind in .init(Int(kind.rawValue), kind.name, kind.fields) })
    }
  }
}

extension DocumentAction.Case {
  fileprivate var fields: [Schema.Field] {
    switch self {
    case .set, .merge, .append, .insert, .test, .replace:
      [.init(1, "path", .path), .init(2, "value", .value)]
    case .remove: [.init(1, "path", .path)]
    case .increment: [.init(1, "path", .path), .init(2, "by", .optional(.value))]
    case .move, .copy: [.init(1, "from", .path), .init(2, "to", .path)]
    case .transaction: [.init(1, "actions", .array(.type("Action")))]
    }
  }
}
