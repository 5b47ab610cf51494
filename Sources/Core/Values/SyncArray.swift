public import CBOR

/// An array in a state: a `TreeArray` that notes its contents at the start of a transaction.
///
/// A copy is O(1) and carries the note, so `var b = a; b.append(x); a = b` settles correctly.
/// Reading, writing, inserting and removing one element are O(log n); the first write to a node in
/// a transaction copies that node. The patch of a transaction costs what it touched.
///
/// Assigning a whole other array carries over the *other's* note, which says nothing about the
/// replaced array. The owner of an array that may be assigned must settle by difference, or assign
/// with `replaceContents(with:)`, which notes the replaced contents.
@frozen
public struct SyncArray<Element: Synchronizable>: Sendable {
  @usableFromInline var storage: TreeArray<Element>
  /// The contents at the start of the transaction, from its first mutation on.
  @usableFromInline var base: TreeArray<Element>?

  /// An array with these contents, at the start of a transaction. O(1).
  @inlinable
  public init(_ tree: TreeArray<Element>) {
    storage = tree
    base = nil
  }

  /// An empty array, at the start of a transaction.
  @inlinable
  public init() { self.init(TreeArray()) }

  /// The elements of a sequence, at the start of a transaction. O(n).
  @inlinable
  public init(_ elements: some Sequence<Element>) { self.init(TreeArray(elements)) }

  /// The contents, without the note. O(1).
  @inlinable public var tree: TreeArray<Element> { storage }

  /// The seed that the array has adopted.
  @inlinable public var seed: HashSeed { storage.seed }

  @inlinable @inline(__always)
  mutating func note() {
    if base == nil { base = storage }
  }

  /// Replace the contents by those of `tree`, as a mutation of the transaction. O(1); shared nodes
  /// cost nothing in the patch.
  @inlinable
  public mutating func replaceContents(with tree: TreeArray<Element>) {
    note()
    let seed = self.seed
    storage = tree
    if seed != .unseeded { storage.setRoot(tree.root, seed: seed) }
  }

  /// Change an element in place. O(log n).
  @inlinable
  public mutating func modifyElement<R, E: Error>(
    at index: Int, _ body: (inout Element) throws(E) -> R
  ) throws(E) -> R {
    note()
    return try storage.modifyElement(at: index, body)
  }
}

// MARK: - Collection

extension SyncArray: RandomAccessCollection, MutableCollection, RangeReplaceableCollection,
  ExpressibleByArrayLiteral
{
  @inlinable public var startIndex: Int { 0 }
  @inlinable public var endIndex: Int { storage.count }
  @inlinable public var count: Int { storage.count }
  @inlinable public var isEmpty: Bool { storage.isEmpty }
  @inlinable public func index(after index: Int) -> Int { index + 1 }
  @inlinable public func index(before index: Int) -> Int { index - 1 }
  @inlinable public func index(_ index: Int, offsetBy distance: Int) -> Int { index + distance }
  @inlinable public func distance(from start: Int, to end: Int) -> Int { end - start }

  @inlinable
  public init(arrayLiteral elements: Element...) { self.init(elements) }

  /// The element at an index. O(log n); writes are in place.
  @inlinable
  public subscript(index: Int) -> Element {
    get { storage[index] }
    _modify {
      note()
      yield &storage[index]
    }
  }

  @inlinable
  public func makeIterator() -> TreeArray<Element>.Iterator { storage.makeIterator() }

  /// Replace the elements of a range. O(inserted + log n), however many are removed.
  @inlinable
  public mutating func replaceSubrange(
    _ range: Range<Int>, with elements: some Collection<Element>
  ) {
    note()
    storage.replaceSubrange(range, with: elements)
  }

  /// Add an element at the end. O(log n) with a small constant.
  @inlinable
  public mutating func append(_ element: Element) {
    note()
    storage.append(element)
  }

  /// Add elements at the end. O(added + log n).
  @inlinable
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    note()
    storage.append(contentsOf: elements)
  }

  /// Insert an element before the one at `index`, or at the end. O(log n).
  @inlinable
  public mutating func insert(_ element: Element, at index: Int) {
    note()
    storage.insert(element, at: index)
  }

  /// Remove an element. O(log n).
  @inlinable
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    note()
    return storage.remove(at: index)
  }

  /// Remove everything.
  @inlinable
  public mutating func removeAll(keepingCapacity: Bool = false) {
    note()
    storage.removeAll()
  }
}

// MARK: - Synchronizing

extension SyncArray: Journaled {
  /// Whether both hold the same elements, whatever their notes. Costs as `TreeArray.isSame`.
  @inlinable
  public func isSame(as other: SyncArray) -> Bool { storage.isSame(as: other.storage) }

  @inlinable public func prefetchStorage() { storage.prefetchStorage() }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { storage.encode(into: &encoder) }

  /// Decode an array, at the start of a transaction. O(n).
  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init(try TreeArray(from: &decoder, seed: seed))
  }

  /// Append the patch that turns `old` into this array, from the contents and not the notes.
  @inlinable
  public func encodeDifference(from old: SyncArray, into encoder: inout CBOREncoder) -> Bool {
    storage.encodeDifference(from: old.storage, into: &encoder)
  }

  /// Apply the next item, a patch, as a mutation of the transaction: a failed patch can be rolled
  /// back. A mirror, which never settles, ends its transaction with `adopt(seed:)`.
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    note()
    try storage.apply(patch: &decoder, seed: seed)
  }

  @inlinable
  public func digest(seed: HashSeed) -> UInt64 { storage.digest(seed: seed) }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .array(Element.schemaKind(in: &schema))
  }

  /// Make the array, with its present contents, part of a state that hashes with `seed`. This
  /// begins a transaction and forgets the note of the previous one. Costs as `TreeArray.adopt`.
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    base = nil
    storage.adopt(seed: seed)
  }

  /// End the transaction: make inserted elements adopt the array's seed, and append the patch from
  /// the start of the transaction to now. O(what was touched · log n).
  ///
  /// The first transaction of an array that was not adopted at its start costs O(n) more.
  @inlinable
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    guard let old = base else { return false }
    let wasAdopted = old.root?.isAdopted ?? true
    // Adopting everything before the comparison would leave no shared nodes to skip.
    if wasAdopted { storage.adopt(seed: seed) }
    let hasChanged = storage.encodeDifference(from: old, into: &encoder)
    base = nil
    if !wasAdopted { storage.adopt(seed: seed) }
    return hasChanged
  }

  /// End the transaction and restore the contents that it began with. O(1), plus freeing what the
  /// transaction allocated.
  @inlinable
  public mutating func rollBack() {
    guard let old = base else { return }
    base = nil
    storage = old
  }
}

extension SyncArray: Equatable, CustomStringConvertible {
  /// Whether both encode to the same bytes.
  @inlinable
  public static func == (first: SyncArray, second: SyncArray) -> Bool {
    first.isSame(as: second)
  }

  public var description: String { storage.description }
}
