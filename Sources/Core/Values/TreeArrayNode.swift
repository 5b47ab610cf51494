public import Synchronization

// A B+-tree by position. All leaves are at one depth; a leaf holds at most 32 elements, a branch at
// most 32 children with the cumulative counts of their elements.
//
// Invariants:
//  - Every node holds at least 16 slots, except the root and the nodes of the right edge, which
//    appending fills one after the other and which hold at least 1. A root that is a branch has at
//    least 2 children; a root that is a leaf may be empty.
//  - A node that more than one reference reaches never changes, except for its caches.
//  - `isAdopted` means that every element below has adopted `seed`. Every mutation clears it along
//    its path, so adopting again visits only what was touched since. The root's `seed` is the
//    seed of the whole array and outlives mutations.

/// A leaf or branch of a `TreeArray`.
///
/// Sendable and unchecked for exclusivity: only a mutating method of the one array that reaches a
/// node writes to it, so the exclusive access to that array excludes every other one.
@usableFromInline
final class TreeArrayNode<Element: Synchronizable>: @unchecked Sendable {
  @usableFromInline
  struct Child {
    @usableFromInline var node: TreeArrayNode
    /// The number of elements in this child and those before it.
    @usableFromInline var end: Int

    @inlinable
    init(_ node: TreeArrayNode, end: Int) {
      self.node = node
      self.end = end
    }
  }

  @usableFromInline typealias Children = ContiguousArray<Child>

  /// 0 for a leaf.
  @usableFromInline let height: Int
  /// Empty in a branch.
  @exclusivity(unchecked) @usableFromInline var elements: ContiguousArray<Element>
  /// Empty in a leaf.
  @exclusivity(unchecked) @usableFromInline var children: Children
  @exclusivity(unchecked) @usableFromInline var seed: HashSeed
  @exclusivity(unchecked) @usableFromInline var isAdopted: Bool

  // Nodes are shared between threads, so the cached polynomial is a pair of words written without
  // a lock: it is valid for a seed when their difference is that seed's tag. A pair torn between
  // writers for two different seeds fails that test except with the odds of a digest collision.
  // (Hyatt and Mann, "A lockless transposition-table implementation", 2002.)
  @usableFromInline let cachedPolynomial = Atomic<UInt64>(0)
  @usableFromInline let cachedCheck = Atomic<UInt64>(0)
  /// The nesting depth of the elements, plus one; 0 when it is not cached.
  @usableFromInline let cachedNesting = Atomic<UInt64>(0)

  @inlinable
  init(leaf elements: ContiguousArray<Element>, seed: HashSeed, isAdopted: Bool = false) {
    height = 0
    self.elements = elements
    children = []
    self.seed = seed
    self.isAdopted = isAdopted
  }

  @inlinable
  init(height: Int, children: Children, seed: HashSeed, isAdopted: Bool = false) {
    self.height = height
    elements = []
    self.children = children
    self.seed = seed
    self.isAdopted = isAdopted
  }

  /// A branch over nodes of one height.
  @inlinable
  convenience init(
    over nodes: some Collection<TreeArrayNode>, seed: HashSeed, isAdopted: Bool = false
  ) {
    var children = Children()
    children.reserveCapacity(nodes.count)
    var end = 0
    var height = 0
    for node in nodes {
      end += node.count
      height = node.height
      children.append(Child(node, end: end))
    }
    self.init(height: height + 1, children: children, seed: seed, isAdopted: isAdopted)
  }

  @inlinable static var capacity: Int { 32 }
  @inlinable static var minimum: Int { 16 }

  /// The number of elements below.
  @inlinable var count: Int { height == 0 ? elements.count : children[children.count - 1].end }

  /// The number of elements of a leaf, or of children of a branch.
  @inlinable var slots: Int { height == 0 ? elements.count : children.count }

  @inlinable
  func start(of slot: Int) -> Int { slot == 0 ? 0 : children[slot - 1].end }

  /// The child that holds the element at `index`, which must be one of this branch's.
  @inlinable
  func slot(holding index: Int) -> Int {
    // A child holds at most 32^height elements, so the search can start here; in a packed tree it
    // ends here, too.
    var slot = index >> (5 &* height)
    while children[slot].end <= index { slot &+= 1 }
    return slot
  }

  // MARK: Uniqueness

  /// A new node with the same contents; the elements are copied when either node changes.
  @inlinable
  func copy() -> TreeArrayNode {
    let copy =
      height == 0
      ? TreeArrayNode(leaf: elements, seed: seed, isAdopted: isAdopted)
      : TreeArrayNode(height: height, children: children, seed: seed, isAdopted: isAdopted)
    copy.cachedPolynomial.store(cachedPolynomial.load(ordering: .relaxed), ordering: .relaxed)
    copy.cachedCheck.store(cachedCheck.load(ordering: .relaxed), ordering: .relaxed)
    copy.cachedNesting.store(cachedNesting.load(ordering: .relaxed), ordering: .relaxed)
    return copy
  }

  /// The child, after making sure that only this node, itself unique, refers to it.
  @inlinable
  func uniqueChild(_ slot: Int) -> TreeArrayNode {
    if !isKnownUniquelyReferenced(&children[slot].node) {
      children[slot].node = children[slot].node.copy()
    }
    return children[slot].node
  }

  /// Clear `isAdopted` and the caches: the contents are about to change.
  @inlinable
  func invalidate() {
    isAdopted = false
    cachedPolynomial.store(0, ordering: .relaxed)
    cachedCheck.store(0, ordering: .relaxed)
    cachedNesting.store(0, ordering: .relaxed)
  }

  // MARK: Inserting

  /// Insert into this unique node. Returns the new right neighbour if it had to be split.
  @inlinable
  func insert(_ element: Element, at index: Int, atRightEdge: Bool) -> TreeArrayNode? {
    invalidate()
    if height == 0 { return insertIntoLeaf(element, at: index, atRightEdge: atRightEdge) }
    // Between two children the left one takes the element, so that appending reaches the last
    // child.
    let slot = index == 0 ? 0 : self.slot(holding: index &- 1)
    let last = children.count &- 1
    let start = self.start(of: slot)
    let child = uniqueChild(slot)
    let added = child.insert(
      element, at: index &- start, atRightEdge: atRightEdge && slot == last)
    for later in slot...last { children[later].end &+= 1 }
    guard let added else { return nil }
    let end = children[slot].end
    children[slot].end = end - added.count
    return insert(child: Child(added, end: end), at: slot + 1, atRightEdge: atRightEdge)
  }

  @inlinable
  func insertIntoLeaf(_ element: Element, at index: Int, atRightEdge: Bool) -> TreeArrayNode? {
    if elements.count < Self.capacity {
      elements.insert(element, at: index)
      return nil
    }
    let middle = atRightEdge && index == Self.capacity ? Self.capacity : Self.minimum
    var tail = ContiguousArray<Element>()
    tail.reserveCapacity(Self.capacity)
    tail.append(contentsOf: elements[middle...])
    elements.removeSubrange(middle...)
    if index > middle || middle == Self.capacity {
      tail.insert(element, at: index - middle)
    } else {
      elements.insert(element, at: index)
    }
    return TreeArrayNode(leaf: tail, seed: seed)
  }

  @inlinable
  func insert(child: Child, at slot: Int, atRightEdge: Bool) -> TreeArrayNode? {
    if children.count < Self.capacity {
      children.insert(child, at: slot)
      return nil
    }
    let middle = atRightEdge && slot == Self.capacity ? Self.capacity : Self.minimum
    var tail = Children()
    tail.reserveCapacity(Self.capacity)
    tail.append(contentsOf: children[middle...])
    children.removeSubrange(middle...)
    if slot > middle || middle == Self.capacity {
      tail.insert(child, at: slot - middle)
    } else {
      children.insert(child, at: slot)
    }
    let start = children[children.count - 1].end
    for slot in tail.indices { tail[slot].end -= start }
    return TreeArrayNode(height: height, children: tail, seed: seed)
  }

  // MARK: Removing

  /// Remove from this unique node, which may be left with too few slots, or none.
  @inlinable
  func remove(at index: Int) -> Element {
    invalidate()
    if height == 0 { return elements.remove(at: index) }
    let slot = self.slot(holding: index)
    let start = self.start(of: slot)
    let child = uniqueChild(slot)
    let removed = child.remove(at: index &- start)
    for later in slot..<children.count { children[later].end &-= 1 }
    if child.slots < Self.minimum { refill(slot) }
    return removed
  }

  @inlinable
  func refill(_ slot: Int) {
    if children[slot].node.slots == 0 {
      children.remove(at: slot)
      return
    }
    guard children.count > 1 else { return }
    join(at: slot > 0 ? slot - 1 : 0)
  }

  /// Replace the children at `slot` and `slot + 1` by their concatenation.
  @inlinable
  func join(at slot: Int) {
    let start = self.start(of: slot)
    let end = children[slot + 1].end
    let (first, second) = Self.concatenate(children[slot].node, children[slot + 1].node)
    children[slot] = Child(first, end: start + first.count)
    if let second {
      children[slot + 1] = Child(second, end: end)
    } else {
      children.remove(at: slot + 1)
    }
  }

  // MARK: Splitting and concatenating

  /// The elements before `index`, and those from it on. O(log n); both trees keep the invariants,
  /// except at their edges.
  @inlinable
  static func split(
    _ node: TreeArrayNode, at index: Int
  ) -> (before: TreeArrayNode?, after: TreeArrayNode?) {
    if index == 0 { return (nil, node) }
    if index == node.count { return (node, nil) }
    if node.height == 0 {
      let before = TreeArrayNode(
        leaf: ContiguousArray(node.elements[..<index]), seed: node.seed, isAdopted: node.isAdopted)
      let after = TreeArrayNode(
        leaf: ContiguousArray(node.elements[index...]), seed: node.seed, isAdopted: node.isAdopted)
      return (before, after)
    }
    let slot = node.slot(holding: index)
    let (before, after) = split(node.children[slot].node, at: index - node.start(of: slot))
    var left = ContiguousArray(node.children[..<slot].map { $0.node })
    if let before { left.append(before) }
    var right = ContiguousArray<TreeArrayNode>()
    if let after { right.append(after) }
    right.append(contentsOf: node.children[(slot + 1)...].lazy.map { $0.node })
    return (
      left.isEmpty ? nil : TreeArrayNode(over: left, seed: node.seed, isAdopted: node.isAdopted),
      right.isEmpty ? nil : TreeArrayNode(over: right, seed: node.seed, isAdopted: node.isAdopted)
    )
  }

  /// The node with the nodes of its left edge refilled, from the bottom up.
  @inlinable
  static func withFullLeftEdge(_ node: TreeArrayNode) -> TreeArrayNode {
    guard node.height > 0 else { return node }
    let first = node.children[0].node
    let full = withFullLeftEdge(first)
    guard full !== first || first.slots < minimum else { return node }
    let result = node.copy()
    result.children[0].node = full
    result.isAdopted = result.isAdopted && full.hasAdopted(result.seed)
    if full.slots < minimum && result.children.count > 1 {
      result.isAdopted = false
      result.join(at: 0)
    }
    return result
  }

  /// One or two nodes with the elements of both, of the greater of the two heights. O(log n),
  /// squared if many nodes at the seam have few slots. Nodes away from the seam are kept.
  @inlinable
  static func concatenate(
    _ first: TreeArrayNode, _ second: TreeArrayNode
  ) -> (TreeArrayNode, TreeArrayNode?) {
    var (first, second) = (first, second)
    while first.height < second.height {
      first = TreeArrayNode(over: CollectionOfOne(first), seed: first.seed)
    }
    while second.height < first.height {
      second = TreeArrayNode(over: CollectionOfOne(second), seed: second.seed)
    }
    if first.height == 0 { return concatenateLeaves(first, second) }

    let (last, next) = (first.children[first.children.count - 1].node, second.children[0].node)
    let (left, right) = concatenate(last, next)
    if left === last && right === next && first.slots >= minimum && second.slots >= minimum {
      return (first, second)
    }
    var nodes = ContiguousArray<TreeArrayNode>()
    nodes.reserveCapacity(first.slots + second.slots)
    nodes.append(contentsOf: first.children.dropLast().lazy.map { $0.node })
    nodes.append(left)
    if let right { nodes.append(right) }
    nodes.append(contentsOf: second.children.dropFirst().lazy.map { $0.node })
    if right == nil && left.slots < minimum && nodes.count > 1 {
      let slot = first.slots > 1 ? first.slots - 2 : 0
      let (left, right) = concatenate(nodes[slot], nodes[slot + 1])
      nodes[slot] = left
      if let right {
        nodes[slot + 1] = right
      } else {
        nodes.remove(at: slot + 1)
      }
    }
    return distribute(nodes, preferring: first.slots, seed: first.seed)
  }

  @inlinable
  static func concatenateLeaves(
    _ first: TreeArrayNode, _ second: TreeArrayNode
  ) -> (TreeArrayNode, TreeArrayNode?) {
    let total = first.slots + second.slots
    if total > capacity && first.slots >= minimum && second.slots >= minimum {
      return (first, second)
    }
    var all = ContiguousArray<Element>()
    all.reserveCapacity(total)
    all.append(contentsOf: first.elements)
    all.append(contentsOf: second.elements)
    if total <= capacity { return (TreeArrayNode(leaf: all, seed: first.seed), nil) }
    let middle = (total + 1) / 2
    return (
      TreeArrayNode(leaf: ContiguousArray(all[..<middle]), seed: first.seed),
      TreeArrayNode(leaf: ContiguousArray(all[middle...]), seed: first.seed)
    )
  }

  /// One branch over at most 64 nodes, or two, divided at `preferred` if that fills both.
  @inlinable
  static func distribute(
    _ nodes: ContiguousArray<TreeArrayNode>, preferring preferred: Int, seed: HashSeed
  ) -> (TreeArrayNode, TreeArrayNode?) {
    let total = nodes.count
    if total <= capacity { return (TreeArrayNode(over: nodes, seed: seed), nil) }
    let fills = { (slots: Int) in slots >= minimum && slots <= capacity }
    let middle = fills(preferred) && fills(total - preferred) ? preferred : (total + 1) / 2
    return (
      TreeArrayNode(over: nodes[..<middle], seed: seed),
      TreeArrayNode(over: nodes[middle...], seed: seed)
    )
  }

  // MARK: Seeds and digests

  @inlinable
  func hasAdopted(_ seed: HashSeed) -> Bool { isAdopted && self.seed == seed }

  /// Make the elements below this unique node adopt a seed, skipping those that have.
  @inlinable
  func adopt(_ seed: HashSeed) {
    for index in elements.indices { elements[index].adopt(seed: seed) }
    for slot in children.indices where !children[slot].node.hasAdopted(seed) {
      uniqueChild(slot).adopt(seed)
    }
    self.seed = seed
    isAdopted = true
  }

  /// The sum of digest(i) * base^(count - 1 - i) over the elements below. O(what changed).
  @inlinable
  func polynomial(seed: HashSeed) -> UInt64 {
    // Odd, so that the pair of zeros is valid for no seed.
    let tag = Hashing.mix(seed.rawValue &+ Hashing.arrayBase) | 1
    let cached = cachedPolynomial.load(ordering: .relaxed)
    if cachedCheck.load(ordering: .relaxed) &- cached == tag { return cached }
    var result: UInt64 = 0
    elements.withUnsafeBufferPointer { elements in
      guard let first = elements.baseAddress else { return }
      for index in elements.indices {
        let digest = (first + index).inPlace.pointee.digest(seed: seed)
        result = result &* Hashing.arrayBase &+ digest
      }
    }
    var start = 0
    for child in children {
      result =
        result &* Self.power(child.end - start) &+ child.node.polynomial(seed: seed)
      start = child.end
    }
    cachedPolynomial.store(result, ordering: .relaxed)
    cachedCheck.store(result &+ tag, ordering: .relaxed)
    return result
  }

  /// The greatest result of `levels` for an element below; cached in every node.
  func deepest(_ levels: (Element) -> Int) -> Int {
    let known = cachedNesting.load(ordering: .relaxed)
    if known != 0 { return Int(truncatingIfNeeded: known) - 1 }
    var deepest = 0
    for element in elements { deepest = max(deepest, levels(element)) }
    for child in children { deepest = max(deepest, child.node.deepest(levels)) }
    cachedNesting.store(UInt64(truncatingIfNeeded: deepest) + 1, ordering: .relaxed)
    return deepest
  }

  /// The base of the polynomial to a power, modulo 2^64. O(log exponent).
  @inlinable
  static func power(_ exponent: Int) -> UInt64 {
    var (result, square, rest) = (1 as UInt64, Hashing.arrayBase, exponent)
    while rest > 0 {
      if rest & 1 == 1 { result &*= square }
      square &*= square
      rest >>= 1
    }
    return result
  }
}

/// Collects elements into full leaves and these into a packed tree. O(1) each.
@usableFromInline
struct TreeArrayBuilder<Element: Synchronizable> {
  @usableFromInline typealias Node = TreeArrayNode<Element>

  @usableFromInline var leaf: ContiguousArray<Element> = []
  @usableFromInline var leaves: ContiguousArray<Node> = []
  @usableFromInline let seed: HashSeed
  @usableFromInline let isAdopted: Bool

  @inlinable
  init(seed: HashSeed = .unseeded, isAdopted: Bool = false) {
    self.seed = seed
    self.isAdopted = isAdopted
  }

  @inlinable
  mutating func append(_ element: Element) {
    if leaf.count == Node.capacity {
      leaves.append(Node(leaf: leaf, seed: seed, isAdopted: isAdopted))
      leaf = []
      leaf.reserveCapacity(Node.capacity)
    }
    leaf.append(element)
  }

  /// The root over all elements; nil if there are none.
  @inlinable
  consuming func finish() -> Node? {
    if leaf.isEmpty { return nil }
    leaves.append(Node(leaf: leaf, seed: seed, isAdopted: isAdopted))
    var nodes = leaves
    while nodes.count > 1 {
      var above: ContiguousArray<Node> = []
      above.reserveCapacity(nodes.count / Node.capacity + 1)
      var start = 0
      while start < nodes.count {
        let end = Swift.min(start + Node.capacity, nodes.count)
        above.append(Node(over: nodes[start..<end], seed: seed, isAdopted: isAdopted))
        start = end
      }
      nodes = above
    }
    return nodes[0]
  }
}
