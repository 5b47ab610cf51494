public import CBOR
public import CPrefetch

extension TreeArray: Synchronizable {
  /// Whether both share their storage. If so they are the same; arrays that are the same need not share
  /// it. O(1).
  @inlinable
  public func isIdentical(to other: TreeArray) -> Bool { root === other.root }

  /// O(1) for copies; otherwise O(n) at most, skipping nodes that both share at the same position.
  @inlinable
  public func isSame(as other: TreeArray) -> Bool {
    guard count == other.count else { return false }
    guard let root, let theirs = other.root else { return true }
    return Self.isSame(root, theirs)
  }

  /// Whether two trees of equal counts hold the same elements.
  @inlinable
  static func isSame(_ first: TreeArrayNode<Element>, _ second: TreeArrayNode<Element>) -> Bool {
    if first === second { return true }
    guard first.height == second.height, first.slots == second.slots else {
      return areSame(Iterator(first), Iterator(second))
    }
    if first.height == 0 {
      for index in first.elements.indices
      where !first.elements[index].isSame(as: second.elements[index]) { return false }
      return true
    }
    for slot in first.children.indices where first.children[slot].end != second.children[slot].end {
      return areSame(Iterator(first), Iterator(second))
    }
    for slot in first.children.indices
    where !isSame(first.children[slot].node, second.children[slot].node) { return false }
    return true
  }

  @inlinable
  static func areSame(_ first: Iterator, _ second: Iterator) -> Bool {
    var (first, second) = (first, second)
    while let element = first.next() {
      guard let other = second.next(), element.isSame(as: other) else { return false }
    }
    return true
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .array(Element.schemaKind(in: &schema))
  }

  @inlinable
  public func prefetchStorage() {
    if let root { prefetch_line(Unmanaged.passUnretained(root).toOpaque()) }
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(count)
    guard encoder.hasRoom(for: SmallForm.bytes(ofElements: count)) else { return }
    if let root { Self.encode(root, into: &encoder) }
  }

  /// Append the elements of a tree, without a head.
  @inlinable
  static func encode(_ node: TreeArrayNode<Element>, into encoder: inout CBOREncoder) {
    node.elements.withUnsafeBufferPointer { elements in
      guard let first = elements.baseAddress else { return }
      for index in elements.indices { (first + index).inPlace.pointee.prefetchStorage() }
      for index in elements.indices {
        (first + index).inPlace.pointee.encode(into: &encoder)
        if encoder.isOver { return }
      }
    }
    for child in node.children {
      encode(child.node, into: &encoder)
      if encoder.isOver { return }
    }
  }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    // Nothing is reserved: memory grows with the elements read, not with the declared count.
    let count = try decoder.array()
    var builder = TreeArrayBuilder<Element>(seed: seed, isAdopted: true)
    for _ in 0..<count { builder.append(try Element(from: &decoder, seed: seed)) }
    decoder.close()
    root = nil
    setRoot(builder.finish(), seed: seed)
  }

  /// `[value]` replaces the array; `[splices, edits]` changes it. O(changes · log n).
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let value = try Self.replacement(from: &decoder, seed: seed) {
      self = value
      return
    }
    let wasAdopted = root?.hasAdopted(seed) ?? true
    try applyParts(&decoder, seed: seed)
    if wasAdopted { adopt(seed: seed) }
  }

  /// The hash of a polynomial over the elements' digests, of which each node caches its part: O(n)
  /// at first, then O(what changed · log n).
  @inlinable
  public func digest(seed: HashSeed) -> UInt64 {
    Hashing.array(polynomial: root?.polynomial(seed: seed) ?? 0, count: count)
  }

  /// Make the elements adopt a seed, and remember it. O(1) when all have; O(touched · log n) when
  /// the array had adopted the seed and elements were put in or changed since; else O(n).
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    if let root {
      if root.hasAdopted(seed) { return }
    } else if seed == .unseeded {
      return
    }
    uniqueRoot().adopt(seed)
  }
}

extension TreeArray: PatchableArray {
  @inlinable
  mutating func splice(
    _ range: Range<Int>, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    let inserted = try decoder.array()
    if range.count + inserted <= 4 {
      for _ in range { remove(at: range.lowerBound) }
      for index in 0..<inserted {
        insert(try Element(from: &decoder, seed: seed), at: range.lowerBound + index)
      }
    } else {
      var builder = TreeArrayBuilder<Element>(seed: seed, isAdopted: true)
      for _ in 0..<inserted { builder.append(try Element(from: &decoder, seed: seed)) }
      replaceSubrange(range, withTree: TreeArray(root: builder.finish()))
    }
    decoder.close()
  }

  @inlinable
  mutating func edit(
    at index: Int, by decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try modifyElement(at: index) { (element: inout Element) throws(CBORError) in
      try element.apply(patch: &decoder, seed: seed)
    }
  }
}
