extension EffectTable {
  func leaf(_ id: NodeID) -> Leaf? {
    guard case .leaf(let leaf)? = nodes[id]?.body else { return nil }
    return leaf
  }

  func leaf(_ id: EffectID) -> Leaf? { leaf(id.rawValue) }

  func scope(of id: EffectID) -> [EffectKey] { nodes[id.rawValue]?.context.scope ?? [] }

  /// The record of a leaf that ended by itself, if it is still among the latest.
  func endedLeaf(_ id: EffectID) -> Ended? { ended.last { $0.id == id.rawValue } }

  /// Count an action that a leaf sends. Returns its cause, or nil when the leaf is not running.
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

  /// The running effects, in the order of their start.
  var running: [RunningEffect] { [NodeID](nodes.keys).inOrder.compactMap(running) }

  /// The first `limit` running effects from a number on, in the order of their start. O(nodes) for
  /// a small limit.
  func running(from first: NodeID, limit: Int) -> [RunningEffect] {
    var found: [NodeID] = []
    for node in nodes.keys where node >= first && (found.count < limit || node < found[limit - 1]) {
      guard let leaf = leaf(node), leaf.window == nil else { continue }
      if found.count == limit { found.removeLast() }
      found.insert(node, at: found.firstIndex { node < $0 } ?? found.count)
    }
    return found.compactMap(running)
  }

  private func running(_ node: NodeID) -> RunningEffect? {
    guard let leaf = leaf(node), leaf.window == nil else { return nil }
    return RunningEffect(
      id: id(node), name: leaf.work.name, keys: keys(around: node), action: leaf.actionName,
      sequence: leaf.sequence, client: leaf.cause.client,
      isOwned: nodes[node]?.context.isOwned ?? false, started: leaf.started, sent: leaf.sent,
      place: leaf.work.place)
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
