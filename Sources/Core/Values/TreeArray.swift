/// A persistent array: a copy is O(1) and never makes a later write slow, and two arrays of one
/// lineage are compared at the cost of what differs.
///
/// Reading, writing, inserting and removing one element are O(log n), with 32 elements or children
/// to a node: four levels hold a million. The first write after a copy copies the path to its
/// element and nothing else. Iteration and building are O(n).
@frozen
public struct TreeArray<Element: Synchronizable>: Sendable {
  @usableFromInline typealias Node = TreeArrayNode<Element>

  /// Nil only in an empty array that has adopted no seed.
  @usableFromInline var root: TreeArrayNode<Element>?

  @inlinable
  init(root: TreeArrayNode<Element>?) { self.root = root }

  /// An empty array. It allocates nothing.
  @inlinable
  public init() { root = nil }

  /// The elements of a sequence, in packed leaves. O(n).
  @inlinable
  public init(_ elements: some Sequence<Element>) {
    if let other = elements as? TreeArray<Element> {
      self = other
      return
    }
    var builder = TreeArrayBuilder<Element>()
    for element in elements { builder.append(element) }
    root = builder.finish()
  }

  /// The seed that the array has adopted.
  @inlinable
  public var seed: HashSeed { root?.seed ?? .unseeded }

  // MARK: Nodes

  @inlinable
  mutating func uniqueRoot() -> TreeArrayNode<Element> {
    if root == nil {
      root = Node(leaf: [], seed: .unseeded)
    } else if !isKnownUniquelyReferenced(&root) {
      root = root.unsafelyUnwrapped.copy()
    }
    // Invariant: the branch above leaves a root.
    return root.unsafelyUnwrapped
  }

  /// The leaf that holds the element at `index`, after making all nodes on the path to it unique
  /// and clearing their caches. `index` becomes the element's index in the leaf.
  @inlinable
  mutating func uniqueLeaf(_ index: inout Int) -> TreeArrayNode<Element> {
    var node = uniqueRoot()
    node.invalidate()
    while node.height > 0 {
      let slot = node.slot(holding: index)
      index &-= node.start(of: slot)
      node = node.uniqueChild(slot)
      node.invalidate()
    }
    return node
  }

  /// The leaf that holds the element at `index`; `index` becomes the element's index in it.
  @inlinable
  static func leaf(
    below root: TreeArrayNode<Element>, _ index: inout Int
  ) -> TreeArrayNode<Element> {
    var node = root
    while node.height > 0 {
      let slot = node.slot(holding: index)
      index &-= node.start(of: slot)
      node = node.children[slot].node
    }
    return node
  }

  /// The first index of a range at which a condition holds; nil when there is none. O(length + log n).
  @inlinable
  func firstIndex(in range: Range<Int>, where condition: (Element) -> Bool) -> Int? {
    guard let root else { return nil }
    var index = range.lowerBound
    while index < range.upperBound {
      var place = index
      let leaf = Self.leaf(below: root, &place)
      let end = Swift.min(leaf.elements.count, place + range.upperBound - index)
      for place in place..<end {
        if condition(leaf.elements[place]) { return index }
        index += 1
      }
    }
    return nil
  }

  /// Make a tree the contents, without branches of one child at its top, and `seed` the seed.
  @inlinable
  mutating func setRoot(_ tree: TreeArrayNode<Element>?, seed: HashSeed) {
    guard var top = tree else {
      root = seed == .unseeded ? nil : Node(leaf: [], seed: seed, isAdopted: true)
      return
    }
    while top.height > 0 && top.children.count == 1 { top = top.children[0].node }
    if top.height > 0 && top.children.count == 0 { top = Node(leaf: [], seed: seed) }
    if top.seed != seed {
      // A copy for the new seed, because `top` may be shared.
      top = top.copy()
      top.seed = seed
      top.isAdopted = false
    }
    root = top
  }

  /// The concatenation of two trees. O(log n).
  @inlinable
  static func concatenated(
    _ first: TreeArrayNode<Element>?, _ second: TreeArrayNode<Element>?
  ) -> TreeArrayNode<Element>? {
    guard let first, first.slots > 0 else { return second }
    guard let second, second.slots > 0 else { return first }
    let (left, right) = Node.concatenate(first, second)
    guard let right else { return left }
    return Node(over: [left, right], seed: left.seed)
  }
}

// MARK: - Collection

extension TreeArray: RandomAccessCollection, MutableCollection {
  @inlinable public var startIndex: Int { 0 }
  @inlinable public var endIndex: Int { count }
  @inlinable public var count: Int { root?.count ?? 0 }
  @inlinable public var isEmpty: Bool { count == 0 }
  @inlinable public func index(after index: Int) -> Int { index + 1 }
  @inlinable public func index(before index: Int) -> Int { index - 1 }
  @inlinable public func index(_ index: Int, offsetBy distance: Int) -> Int { index + distance }
  @inlinable public func distance(from start: Int, to end: Int) -> Int { end - start }

  /// The element at an index. O(log n); writes are in place and copy only shared nodes.
  @inlinable
  public subscript(index: Int) -> Element {
    get {
      guard let root, index >= 0, index < root.count else {
        preconditionFailure("The index is outside the array.")
      }
      var place = index
      return Self.leaf(below: root, &place).elements[place]
    }
    _modify {
      precondition(index >= 0 && index < count, "The index is outside the array.")
      var place = index
      let leaf = uniqueLeaf(&place)
      yield &leaf.elements[place]
    }
  }

  /// Iterates over the array as it was when the iteration began. O(1) a step.
  @frozen
  public struct Iterator: IteratorProtocol {
    @usableFromInline let root: TreeArrayNode<Element>?
    @usableFromInline var elements: ContiguousArray<Element> = []
    @usableFromInline var place = 0
    /// The index of the first element after the current leaf.
    @usableFromInline var nextLeaf = 0

    @inlinable
    init(_ root: TreeArrayNode<Element>?) { self.root = root }

    @inlinable
    public mutating func next() -> Element? {
      if place == elements.count && !advance() { return nil }
      defer { place &+= 1 }
      return elements[place]
    }

    @inlinable
    mutating func advance() -> Bool {
      guard let root, nextLeaf < root.count else { return false }
      place = nextLeaf
      elements = TreeArray.leaf(below: root, &place).elements
      nextLeaf += elements.count - place
      return true
    }
  }

  @inlinable
  public func makeIterator() -> Iterator { Iterator(root) }
}

// MARK: - Changing

extension TreeArray {
  /// Change an element in place. O(log n).
  @inlinable
  public mutating func modifyElement<R, E: Error>(
    at index: Int, _ body: (inout Element) throws(E) -> R
  ) throws(E) -> R {
    precondition(index >= 0 && index < count, "The index is outside the array.")
    var place = index
    let leaf = uniqueLeaf(&place)
    return try body(&leaf.elements[place])
  }

  /// Insert an element before the one at `index`, or at the end. O(log n).
  @inlinable
  public mutating func insert(_ element: Element, at index: Int) {
    precondition(index >= 0 && index <= count, "The index is outside the array.")
    let root = uniqueRoot()
    if let added = root.insert(element, at: index, atRightEdge: true) {
      self.root = Node(over: [root, added], seed: root.seed)
    }
  }

  /// Add an element at the end. O(log n) with a small constant.
  @inlinable
  public mutating func append(_ element: Element) { insert(element, at: count) }

  /// Add elements at the end. O(added + log n).
  @inlinable
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    let (tree, seed) = (TreeArray(elements).root, self.seed)
    setRoot(Self.concatenated(root, tree), seed: seed)
  }

  /// Remove an element. O(log n).
  @inlinable
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    precondition(index >= 0 && index < count, "The index is outside the array.")
    let root = uniqueRoot()
    let removed = root.remove(at: index)
    if root.height > 0 && root.children.count < 2 { setRoot(root, seed: root.seed) }
    return removed
  }

  /// Replace the elements of a range. O(inserted + log n), however many are removed.
  @inlinable
  public mutating func replaceSubrange(
    _ range: Range<Int>, with elements: some Collection<Element>
  ) {
    precondition(
      range.lowerBound >= 0 && range.upperBound <= count, "The range is outside the array.")
    let inserted = elements.count
    if range.count + inserted <= 4 {
      for _ in range { remove(at: range.lowerBound) }
      var index = range.lowerBound
      for element in elements {
        insert(element, at: index)
        index += 1
      }
      return
    }
    replaceSubrange(range, withTree: TreeArray(elements))
  }

  /// Replace the elements of a range by those of another array, whose nodes are shared. O(log n).
  @inlinable
  public mutating func replaceSubrange(_ range: Range<Int>, withTree tree: TreeArray) {
    precondition(
      range.lowerBound >= 0 && range.upperBound <= count, "The range is outside the array.")
    guard let root else {
      setRoot(tree.root, seed: seed)
      return
    }
    let seed = root.seed
    let before = Node.split(root, at: range.lowerBound).before
    let after = Node.split(root, at: range.upperBound).after.map(Node.withFullLeftEdge)
    self.root = nil
    setRoot(Self.concatenated(Self.concatenated(before, tree.root), after), seed: seed)
  }

  /// Remove all elements. The seed stays.
  @inlinable
  public mutating func removeAll() { setRoot(nil, seed: seed) }
}

extension TreeArray: ExpressibleByArrayLiteral, Equatable, CustomStringConvertible {
  @inlinable
  public init(arrayLiteral elements: Element...) { self.init(elements) }

  /// Whether both encode to the same bytes.
  @inlinable
  public static func == (first: TreeArray, second: TreeArray) -> Bool {
    first.isSame(as: second)
  }

  public var description: String { Array(self).description }
}
