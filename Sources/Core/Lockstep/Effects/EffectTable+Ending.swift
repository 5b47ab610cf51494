extension EffectTable {
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

  /// Remove a node whose children have been removed.
  mutating func remove(_ id: NodeID) {
    guard let node = nodes.removeValue(forKey: id) else { return }
    if let parent = node.parent { nodes[parent]?.children.remove(id) }
    if let key = node.key {
      names[key]?.remove(id)
      if names[key]?.isEmpty == true {
        names[key] = nil
        namesInUse.remove(key)
      }
    }
    guard case .leaf(let leaf) = node.body else { return }
    if leaf.window == nil {
      count -= 1
      release(node.context)
    }
    let scope = node.context.scope
    for index in scope.indices where scope[index].isToOneOfSeveral {
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

  /// Continue a group that has lost a child, and the groups around it.
  private mutating func resume(_ group: NodeID?) {
    var group = group
    while let current = group, let node = nodes[current] {
      guard settle(current) else { return }
      group = node.parent
    }
  }

  // MARK: Cancelling

  /// Cancel everything that runs under a name, in its feature and in those inside. O(what is
  /// found).
  mutating func cancel(_ name: ScopedEffectKey) {
    orders.append(.cancelTasks(name))
    for window in windowsInUse.reached(by: name) { setPending(nil, of: window) }
    let nodes = namesInUse.reached(by: name).flatMap { names[$0] ?? [] }
    for node in nodes.inOrder { cancel(node) }
  }

  /// Cancel everything that runs in a child, and in its children.
  mutating func cancel(scope: [EffectKey]) {
    dropPending { name, _ in name.scope.starts(with: scope) }
    let inside = nodes.filter { $0.value.context.scope.starts(with: scope) }.map(\.key)
    for node in inside.inOrder { cancel(node) }
  }

  /// Cancel everything that runs in children of a state that another one does not have, or has others
  /// in their place. O(what runs).
  mutating func cancelOrphans<State>(of old: State, in new: State) {
    var known: [[EffectKey]: Bool] = [:]
    func isGone(_ scope: [EffectKey]) -> Bool {
      if let isGone = known[scope] { return isGone }
      let isGone = Self.isGone(scope, of: old, in: new)
      known[scope] = isGone
      return isGone
    }
    dropPending { name, _ in isGone(name.scope) }
    // The end of an effect may begin the next one of its sequence.
    while true {
      let orphans = nodes.filter { isGone($0.value.context.scope) }.map(\.key).inOrder
      if orphans.isEmpty { return }
      for id in orphans { cancel(id) }
    }
  }

  private static func isGone<State>(
    _ scope: [EffectKey], of old: State, in new: State
  ) -> Bool {
    var (before, after): (Any?, Any) = (old, new)
    for step in scope {
      guard let child = step.child(in: after) else { return true }
      before = before.flatMap { step.child(in: $0) }
      if step.isToReplaceable, let before, Identity(before) != Identity(child) { return true }
      after = child
    }
    return false
  }

  /// Cancel the effects that a client owns.
  mutating func cancel(ownedBy connection: UInt64) {
    dropPending { $1.isOwned && $1.cause.client?.connection == connection }
    // Cancelling an effect starts the next of its sequence, which is owned as well.
    while let nodes = owned[connection] {
      for node in [NodeID](nodes).inOrder { cancel(node) }
    }
  }

  /// The clients that own effects.
  var owners: [UInt64] { [UInt64](owned.keys).inOrder }

  /// Cancel the cascade of an action from outside: the effects that it started, and all that follow
  /// from them.
  mutating func cancel(cascade root: UInt64) {
    dropPending { Self.root($1) == root }
    let inside = nodes.filter { !$0.value.isWindow && Self.root($0.value.context) == root }
    for node in inside.map(\.key).inOrder { cancel(node) }
  }

  /// Cancel one effect, or all of a name. Returns how many leaves ended.
  mutating func cancel(named text: String) -> Int {
    let before = cancelled
    let matches = nodes.filter { id, node in
      if node.isWindow { return false }
      if case .leaf(let leaf) = node.body, leaf.work.name == text { return true }
      return self.id(id).description == text || node.key?.key.description == text
    }
    for node in matches.map(\.key).inOrder { cancel(node) }
    return cancelled - before
  }

  private mutating func cancel(_ id: NodeID) {
    guard let node = nodes[id] else { return }
    abandon(id)
    resume(node.parent)
  }

  /// Cancel a node and its descendants, without continuing any sequence.
  private mutating func abandon(_ id: NodeID) {
    guard let node = nodes[id] else { return }
    nodes[id]?.body = .group(rest: [])
    for child in [NodeID](node.children).inOrder { abandon(child) }
    nodes[id]?.body = node.body
    if case .leaf(let leaf) = node.body {
      orders.append(.cancel(self.id(id)))
      if let window = leaf.window { forgetWindow(window) } else { cancelled += 1 }
    }
    remove(id)
  }

  // MARK: Cascades

  /// The action from outside that started a context's cascade.
  private static func root(_ context: Context) -> UInt64 { context.cause.root ?? context.sequence }

  mutating func retain(_ context: Context) { retain(root: Self.root(context)) }

  mutating func release(_ context: Context) { release(root: Self.root(context)) }

  /// Count a waiting action, or a running effect, of a cascade.
  mutating func retain(root: UInt64) { open[root, default: 0] += 1 }

  /// Discount a waiting action that has been reduced, or an effect that has ended.
  mutating func release(root: UInt64) {
    guard let count = open[root] else { return }
    open[root] = count > 1 ? count - 1 : nil
  }

  /// Whether the cascade of an action from outside is complete.
  func isDone(_ root: UInt64) -> Bool { open[root] == nil }
}

extension [UInt64] {
  /// Ascending. A generic function that sorts is not specialised in other modules: the standard library's
  /// code for it cannot be. One that calls this is.
  @inline(never)
  var inOrder: [UInt64] { sorted() }
}
