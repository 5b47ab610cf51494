extension EffectTable {
  /// Start the effect that a reduction returned.
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

  /// Continue a group whose children are done, and remove it at its end. Returns whether it is
  /// done.
  mutating func settle(_ group: NodeID) -> Bool {
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
    for index in context.scope.indices where context.scope[index].isToOneOfSeveral {
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
    if let key = node.key {
      if names[key] == nil { namesInUse.insert(key) }
      names[key, default: []].insert(id)
    }
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

  mutating func setPending(
    _ pending: (effect: Effect<Action>, context: Context)?, of name: ScopedEffectKey
  ) {
    guard let window = windows[name] else { return }
    if let pending { retain(pending.context) }
    windows[name]?.pending = pending
    if let dropped = window.pending { release(dropped.context) }
  }

  /// Wait for the end of a throttle interval. The wait belongs to no client and to no cascade.
  private mutating func openWindow(
    _ name: ScopedEffectKey, _ how: Effect<Action>.Throttle, _ context: Context
  ) {
    windows[name] = Window(how: how)
    windowsInUse.insert(name)
    var context = context
    context.isOwned = false
    run(how.wait, context, under: nil, window: name)
  }

  @discardableResult
  mutating func forgetWindow(_ name: ScopedEffectKey) -> Window? {
    windowsInUse.remove(name)
    return windows.removeValue(forKey: name)
  }

  mutating func closeWindow(_ name: ScopedEffectKey) {
    guard let window = forgetWindow(name), let pending = window.pending else { return }
    openWindow(name, window.how, pending.context)
    _ = start(pending.effect, name, .keep, pending.context, under: nil)
    release(pending.context)
  }

  /// Drop the effects that wait for the end of an interval and are no longer wanted.
  mutating func dropPending(
    where isUnwanted: (ScopedEffectKey, Context) -> Bool
  ) {
    let unwanted = windows.filter { name, window in
      window.pending.map { isUnwanted(name, $0.context) } ?? false
    }
    for name in unwanted.keys { setPending(nil, of: name) }
  }
}
