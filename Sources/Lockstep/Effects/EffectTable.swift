// Theory of operation
//
// The effects that a store runs form a forest. A leaf is an operation that runs as a task of the
// shell; a group holds what `merge`, `concatenate` and `cancellable` put together. A group is done
// when its children are and nothing of its sequence is left; then its parent has one child less.
//
// The table is a value and starts nothing itself. What the shell must do is noted (`orders`):
// start this leaf, cancel that one. A leaf enters the table when it is ordered and leaves it when
// it ends or is cancelled; what a leaf that has left sends is ignored. Effects that complete at
// once, such as `send`, never enter it.
//
// Names belong to a scope: the children that come and go (`forEach`, `ifLet`) on the way from the
// root to the feature that returned the effect. So equal names in two rows of a list differ.

/// What a shell must do for a store's effects, in order.
public enum EffectOrder: Hashable, Sendable {
  /// Run the operation of this effect as a task.
  case start(EffectID)
  /// Cancel its task.
  case cancel(EffectID)
  /// Cancel the tasks that effects run under this name inside themselves.
  case cancelTasks(ScopedEffectKey)
}

/// The name of an effect, and the children in whose features it is one.
public struct ScopedEffectKey: Hashable, Sendable {
  var scope: [EffectKey]
  var key: EffectKey
}

/// The running effects of a store.
struct EffectTable<Action: Sendable>: Sendable {
  typealias NodeID = UInt64

  /// An operation that runs.
  struct Leaf: Sendable {
    let work: Effect<Action>.Work
    let cause: Cause
    /// The action that the effect was returned for.
    let sequence: UInt64
    let actionName: String
    let middleware: String?
    let started: Timestamp
    var sent: UInt64 = 0
    /// The name whose interval this leaf waits for.
    var window: ScopedEffectKey?
  }

  private enum Body: Sendable {
    case leaf(Leaf)
    /// What follows once the children are done.
    case group(rest: ArraySlice<Effect<Action>>)
  }

  private struct Node: Sendable {
    var parent: NodeID?
    var children: Set<NodeID> = []
    var body: Body
    var context: Context
    var key: ScopedEffectKey?
    /// Its children are being started: it is not done yet, even if they are.
    var isStarting = false

    /// Whether it waits for the end of an interval.
    var isWindow: Bool { if case .leaf(let leaf) = body { leaf.window != nil } else { false } }
  }

  /// What an effect inherits.
  struct Context: Sendable {
    var cause: Cause
    var sequence: UInt64
    var actionName: String
    var middleware: String?
    var time: Timestamp
    var scope: [EffectKey] = []
    var isOwned = false
  }

  /// What is remembered of a leaf that ended by itself.
  struct Ended: Sendable {
    let id: NodeID
    let name: String
    let place: String
    let actionName: String
  }

  private struct Window: Sendable {
    var how: Effect<Action>.Throttle
    var pending: (effect: Effect<Action>, context: Context)?
  }

  private var nodes: [NodeID: Node] = [:]
  private var names: [ScopedEffectKey: Set<NodeID>] = [:]
  private var windows: [ScopedEffectKey: Window] = [:]
  /// How many leaves run in each child of each scope.
  private(set) var children: [[EffectKey]: [EffectKey: Int]] = [:]
  /// How many leaves, and sends that wait, each action from outside still has.
  private var open: [UInt64: Int] = [:]
  private var owned: [UInt64: Set<NodeID>] = [:]
  private var next: NodeID = 1
  private let salt: UInt64
  /// The latest effects that ended by themselves, to tell of actions that come too late.
  private var ended: [Ended] = []

  var orders: [EffectOrder] = []
  /// Actions that effects sent at once.
  var sends: [(action: Action, cause: Cause)] = []

  init(salt: UInt64) { self.salt = salt }

  /// How many effects run, those aside that wait for the end of an interval.
  private(set) var count = 0
  /// How many have been cancelled.
  private var cancelled = 0

  private func id(_ node: NodeID) -> EffectID { EffectID(node, salt: salt) }

  // MARK: Starting

  /// Start what a reduction returned.
  mutating func start(_ effect: Effect<Action>, _ context: Context) {
    _ = start(effect, context, under: nil)
  }

  /// Returns whether the effect is done already.
  private mutating func start(
    _ effect: Effect<Action>, _ context: Context, under parent: NodeID?
  ) -> Bool {
    guard let node = effect.node else { return true }
    switch node {
    case .send(let action):
      sends.append((action, context.cause.following(context.sequence, origin(context))))
      retain(context)
      return true
    case .run(let work):
      run(work, context, under: parent)
      return false
    case .merge(let effects):
      return group(context, under: parent) { table, group in
        // One of the parts may cancel the name under which all of them run.
        for effect in effects where table.nodes[group] != nil {
          _ = table.start(effect, context, under: group)
        }
      }
    case .concatenate(let effects):
      return group(context, under: parent, rest: effects[...]) { _, _ in }
    case .cancellable(let effect, let key, let inFlight):
      return start(
        effect, ScopedEffectKey(scope: context.scope, key: key), inFlight, context, under: parent)
    case .cancel(let key):
      cancel(ScopedEffectKey(scope: context.scope, key: key))
      return true
    case .cancelScope(let step):
      cancel(scope: context.scope + [step])
      return true
    case .throttle(let effect, let key, let how):
      let name = ScopedEffectKey(scope: context.scope, key: key)
      return throttle(effect, name, how, context, under: parent)
    case .scoped(let step, let effect):
      var inner = context
      inner.scope.append(step)
      return start(effect, inner, under: parent)
    case .owned(let effect):
      var inner = context
      inner.isOwned = true
      return start(effect, inner, under: parent)
    case .accepted(let effect): return start(effect, context, under: parent)
    }
  }

  private func origin(_ context: Context) -> Origin {
    context.middleware.map { .middleware($0) } ?? .effect(id(0), name: "send")
  }

  private mutating func start(
    _ effect: Effect<Action>, _ name: ScopedEffectKey, _ inFlight: EffectInFlight,
    _ context: Context, under parent: NodeID?
  ) -> Bool {
    switch inFlight {
    case .keep: break
    case .cancel: cancel(name)
    case .join: if names[name] != nil { return true }
    }
    return group(context, under: parent, name: name) { table, group in
      _ = table.start(effect, context, under: group)
    }
  }

  /// Make a group, start its children, and close it at once if they are done.
  private mutating func group(
    _ context: Context, under parent: NodeID?, name: ScopedEffectKey? = nil,
    rest: ArraySlice<Effect<Action>> = [], _ fill: (inout EffectTable, NodeID) -> Void
  ) -> Bool {
    let group = add(
      Node(
        parent: parent, body: .group(rest: rest), context: context, key: name, isStarting: true))
    fill(&self, group)
    guard nodes[group] != nil else { return true }
    nodes[group]?.isStarting = false
    return settle(group)
  }

  /// Go on with a group whose children are done, and remove it at its end. Returns whether it is
  /// done.
  private mutating func settle(_ group: NodeID) -> Bool {
    while let node = nodes[group], node.children.isEmpty, !node.isStarting,
      case .group(var rest) = node.body
    {
      guard let effect = rest.popFirst() else {
        remove(group)
        return true
      }
      nodes[group]?.body = .group(rest: rest)
      nodes[group]?.isStarting = true
      _ = start(effect, node.context, under: group)
      nodes[group]?.isStarting = false
    }
    return nodes[group] == nil
  }

  private mutating func run(
    _ work: Effect<Action>.Work, _ context: Context, under parent: NodeID?,
    window: ScopedEffectKey? = nil
  ) {
    var leaf = Leaf(
      work: work, cause: context.cause, sequence: context.sequence,
      actionName: context.actionName, middleware: context.middleware, started: context.time)
    leaf.window = window
    let node = add(Node(parent: parent, body: .leaf(leaf), context: context))
    if window == nil {
      count += 1
      retain(context)
    }
    for index in context.scope.indices {
      children[Array(context.scope[..<index]), default: [:]][context.scope[index], default: 0] += 1
    }
    if context.isOwned, let client = context.cause.client {
      owned[client.connection, default: []].insert(node)
    }
    orders.append(.start(id(node)))
  }

  private mutating func add(_ node: Node) -> NodeID {
    let id = next
    next += 1
    nodes[id] = node
    if let parent = node.parent { nodes[parent]?.children.insert(id) }
    if let key = node.key { names[key, default: []].insert(id) }
    return id
  }

  // MARK: Throttling

  private mutating func throttle(
    _ effect: Effect<Action>, _ name: ScopedEffectKey, _ how: Effect<Action>.Throttle,
    _ context: Context, under parent: NodeID?
  ) -> Bool {
    guard let window = windows[name] else {
      openWindow(name, how, context)
      return start(effect, name, .keep, context, under: parent)
    }
    windows[name]?.how = how
    if how.latest || window.pending == nil { setPending((effect, context), of: name) }
    return true
  }

  private mutating func setPending(
    _ pending: (effect: Effect<Action>, context: Context)?, of name: ScopedEffectKey
  ) {
    guard let window = windows[name] else { return }
    if let pending { retain(pending.context) }
    windows[name]?.pending = pending
    if let dropped = window.pending { release(dropped.context) }
  }

  /// Wait for the end of an interval, on nobody's behalf: the wait is of no client and no cascade.
  private mutating func openWindow(
    _ name: ScopedEffectKey, _ how: Effect<Action>.Throttle, _ context: Context
  ) {
    windows[name] = Window(how: how)
    var context = context
    context.isOwned = false
    run(how.wait, context, under: nil, window: name)
  }

  private mutating func closeWindow(_ name: ScopedEffectKey) {
    guard let window = windows.removeValue(forKey: name), let pending = window.pending else {
      return
    }
    openWindow(name, window.how, pending.context)
    _ = start(pending.effect, name, .keep, pending.context, under: nil)
    release(pending.context)
  }

  /// Forget what waits for the end of an interval and is no longer wanted.
  private mutating func dropPending(
    where isUnwanted: (ScopedEffectKey, Context) -> Bool
  ) {
    let unwanted = windows.filter { name, window in
      window.pending.map { isUnwanted(name, $0.context) } ?? false
    }
    for name in unwanted.keys { setPending(nil, of: name) }
  }

  // MARK: Ending

  /// The task of a leaf has ended by itself.
  mutating func finished(_ id: EffectID) {
    guard let leaf = leaf(id.rawValue) else { return }
    if ended.count == 64 { ended.removeFirst() }
    ended.append(
      Ended(
        id: id.rawValue, name: leaf.work.name, place: leaf.work.place, actionName: leaf.actionName))
    let parent = nodes[id.rawValue]?.parent
    remove(id.rawValue)
    if let window = leaf.window { closeWindow(window) }
    resume(parent)
  }

  /// Take a node out, whose children are gone.
  private mutating func remove(_ id: NodeID) {
    guard let node = nodes.removeValue(forKey: id) else { return }
    if let parent = node.parent { nodes[parent]?.children.remove(id) }
    if let key = node.key {
      names[key]?.remove(id)
      if names[key]?.isEmpty == true { names[key] = nil }
    }
    guard case .leaf(let leaf) = node.body else { return }
    if leaf.window == nil {
      count -= 1
      release(node.context)
    }
    let scope = node.context.scope
    for index in scope.indices {
      let outer = Array(scope[..<index])
      children[outer]?[scope[index], default: 1] -= 1
      if children[outer]?[scope[index]] == 0 { children[outer]?[scope[index]] = nil }
      if children[outer]?.isEmpty == true { children[outer] = nil }
    }
    if node.context.isOwned, let client = node.context.cause.client {
      owned[client.connection]?.remove(id)
      if owned[client.connection]?.isEmpty == true { owned[client.connection] = nil }
    }
  }

  /// Go on with a group that has lost a child, and with those around it.
  private mutating func resume(_ group: NodeID?) {
    var group = group
    while let current = group, let node = nodes[current] {
      guard settle(current) else { return }
      group = node.parent
    }
  }

  // MARK: Cancelling

  /// Cancel everything that runs under a name.
  mutating func cancel(_ name: ScopedEffectKey) {
    orders.append(.cancelTasks(name))
    setPending(nil, of: name)
    for node in (names[name] ?? []).sorted() { cancel(node) }
  }

  /// Cancel everything that runs in a child, and in its children.
  mutating func cancel(scope: [EffectKey]) {
    dropPending { name, _ in name.scope.starts(with: scope) }
    let inside = nodes.filter { $0.value.context.scope.starts(with: scope) }.map(\.key)
    for node in inside.sorted() { cancel(node) }
  }

  /// Cancel what ends with a client.
  mutating func cancel(ownedBy connection: UInt64) {
    dropPending { $1.isOwned && $1.cause.client?.connection == connection }
    // Cancelling one lets the next of a sequence start, which is owned as well.
    while let nodes = owned[connection] {
      for node in nodes.sorted() { cancel(node) }
    }
  }

  /// The clients that own effects.
  var owners: [UInt64] { owned.keys.sorted() }

  /// Cancel what an action from outside began, and what that led to.
  mutating func cancel(cascade root: UInt64) {
    dropPending { Self.root($1) == root }
    let inside = nodes.filter { !$0.value.isWindow && Self.root($0.value.context) == root }
    for node in inside.map(\.key).sorted() { cancel(node) }
  }

  /// Cancel one effect, or all of a name. Returns how many leaves ended.
  mutating func cancel(named text: String) -> Int {
    let before = cancelled
    let matches = nodes.filter { id, node in
      if node.isWindow { return false }
      if case .leaf(let leaf) = node.body, leaf.work.name == text { return true }
      return self.id(id).description == text || node.key?.key.description == text
    }
    for node in matches.map(\.key).sorted() { cancel(node) }
    return cancelled - before
  }

  private mutating func cancel(_ id: NodeID) {
    guard let node = nodes[id] else { return }
    abandon(id)
    resume(node.parent)
  }

  /// Cancel a node and all inside, without going on with anything.
  private mutating func abandon(_ id: NodeID) {
    guard let node = nodes[id] else { return }
    nodes[id]?.body = .group(rest: [])
    for child in node.children.sorted() { abandon(child) }
    nodes[id]?.body = node.body
    if case .leaf(let leaf) = node.body {
      orders.append(.cancel(self.id(id)))
      if let window = leaf.window { windows[window] = nil } else { cancelled += 1 }
    }
    remove(id)
  }

  // MARK: Cascades

  /// The action from outside to which a context leads back.
  private static func root(_ context: Context) -> UInt64 { context.cause.root ?? context.sequence }

  private mutating func retain(_ context: Context) { retain(root: Self.root(context)) }

  private mutating func release(_ context: Context) { release(root: Self.root(context)) }

  /// An action waits.
  mutating func retain(root: UInt64) { open[root, default: 0] += 1 }

  /// An action that waited has been reduced, or an effect has ended.
  mutating func release(root: UInt64) {
    guard let count = open[root] else { return }
    open[root] = count > 1 ? count - 1 : nil
  }

  /// Whether an action from outside has led to all that it will.
  func isDone(_ root: UInt64) -> Bool { open[root] == nil }

  // MARK: Looking up

  private func leaf(_ id: NodeID) -> Leaf? {
    guard case .leaf(let leaf)? = nodes[id]?.body else { return nil }
    return leaf
  }

  func leaf(_ id: EffectID) -> Leaf? { leaf(id.rawValue) }

  func scope(of id: EffectID) -> [EffectKey] { nodes[id.rawValue]?.context.scope ?? [] }

  /// What a leaf that ended by itself was, if that is not long ago.
  func endedLeaf(_ id: EffectID) -> Ended? { ended.last { $0.id == id.rawValue } }

  /// Note that a leaf sends an action. Returns its cause, or nil when the leaf is not running.
  mutating func send(from id: EffectID) -> Cause? {
    guard var node = nodes[id.rawValue], case .leaf(var leaf) = node.body else { return nil }
    leaf.sent += 1
    node.body = .leaf(leaf)
    nodes[id.rawValue] = node
    let name = leaf.work.name
    let origin: Origin =
      leaf.middleware.map { .middleware($0) }
      ?? (leaf.work.isTimer ? .timer(id, name: name) : .effect(id, name: name))
    return leaf.cause.following(leaf.sequence, origin)
  }

  /// The effects that run, in the order of their start.
  var running: [RunningEffect] {
    nodes.keys.sorted().compactMap { node in
      guard let leaf = leaf(node), leaf.window == nil else { return nil }
      return RunningEffect(
        id: id(node), name: leaf.work.name, keys: keys(around: node), action: leaf.actionName,
        sequence: leaf.sequence, client: leaf.cause.client,
        isOwned: nodes[node]?.context.isOwned ?? false, started: leaf.started, sent: leaf.sent,
        place: leaf.work.place)
    }
  }

  private func keys(around node: NodeID) -> [EffectKey] {
    var keys: [EffectKey] = []
    var current = nodes[node]
    while let found = current {
      if let key = found.key { keys.append(key.key) }
      current = found.parent.flatMap { nodes[$0] }
    }
    return keys
  }
}

/// An effect that a store runs, for people.
public struct RunningEffect: Hashable, Sendable {
  public let id: EffectID
  public let name: String
  /// The names under which it can be cancelled, innermost first.
  public let keys: [EffectKey]
  /// The action that it was returned for.
  public let action: String
  /// The sequence number of that action.
  public let sequence: UInt64
  /// The client that began it all.
  public let client: ClientOrigin?
  /// Whether it ends with that client.
  public let isOwned: Bool
  public let started: Timestamp
  /// How many actions it has sent.
  public let sent: UInt64
  /// Where in the source it was written.
  public let place: String
}
