extension SyncIdentifiedArray {
  // MARK: Inserting

  /// Add an element at the end, unless one has its id. Returns whether it was added, and the
  /// position of the element with the id. O(log n) expected.
  @inlinable
  @discardableResult
  public mutating func append(_ element: Element) -> (inserted: Bool, index: Int) {
    insert(element, at: count)
  }

  /// Add the elements whose ids the array does not have yet at the end. O(added · log n).
  @inlinable
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// Insert an element before the one at `index`, or at the end, unless one has its id. Returns
  /// whether it was inserted, and the position of the element with the id. O(log n) expected.
  @inlinable
  @discardableResult
  public mutating func insert(_ element: Element, at index: Int) -> (inserted: Bool, index: Int) {
    precondition(index >= 0 && index <= count, "The index is outside the array.")
    if let present = self.index(id: element.id) { return (false, present) }
    insertNew(element, at: index)
    return (true, index)
  }

  /// Replace the element with the same id at its position, or add the element at the end. Returns
  /// the replaced one. O(log n).
  @inlinable
  @discardableResult
  public mutating func updateOrAppend(_ element: Element) -> Element? {
    updateOrInsert(element, at: count)
  }

  /// Replace the element with the same id at its position, or insert the element before the one at
  /// `index`. Returns the replaced one. O(log n).
  @inlinable
  @discardableResult
  public mutating func updateOrInsert(_ element: Element, at index: Int) -> Element? {
    precondition(index >= 0 && index <= count, "The index is outside the array.")
    let replaced = content.modifyValue(forKey: element.id) { row in
      let old = row.element
      row.element = element
      return old
    }
    if replaced == nil { insertNew(element, at: index) }
    return replaced
  }

  /// Replace the element with the same id at its position, or add the element at the end: an entity
  /// adapter's upsert. O(log n).
  @inlinable
  public mutating func upsert(_ element: Element) { updateOrAppend(element) }

  /// Upsert each of the elements. O(their number · log n).
  @inlinable
  public mutating func upsert(contentsOf elements: some Sequence<Element>) {
    for element in elements { updateOrAppend(element) }
  }

  /// Insert an element whose id is new.
  @inlinable
  mutating func insertNew(_ element: Element, at index: Int) {
    let id = element.id
    let label = OrderLabel.run(
      of: 1, between: index == 0 ? nil : self.label(at: index - 1),
      and: index == count ? nil : self.label(at: index))
    content.set(Row(element, label: label?.start ?? OrderLabel.pending), forKey: id)
    order.insert(id, at: index)
    if label == nil { relabel(around: index..<index + 1) }
  }

  // MARK: Removing

  /// Remove the element with this id, and return it. O(log n) expected; touches nothing when there
  /// is none.
  @inlinable
  @discardableResult
  public mutating func remove(id: ID) -> Element? {
    guard let index = index(id: id) else { return nil }
    return remove(at: index)
  }

  /// Remove the element with the same id, and return it.
  @inlinable
  @discardableResult
  public mutating func remove(_ element: Element) -> Element? { remove(id: element.id) }

  /// Remove the element at a position. O(log n).
  @inlinable
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    let id = order.remove(at: index)
    guard let row = content.removeValue(forKey: id) else {
      preconditionFailure("The order names no row: \(id).")
    }
    return row.element
  }

  /// Remove the elements at some positions, as in `onDelete` of a list. O(their number · log n).
  @inlinable
  public mutating func remove(atOffsets offsets: some Sequence<Int>) {
    for index in Set(offsets).sorted(by: >) { remove(at: index) }
  }

  /// Remove the elements of a range. O(their number · log n).
  @inlinable
  public mutating func removeSubrange(_ range: Range<Int>) {
    for index in range { content.removeValue(forKey: order[index]) }
    order.removeSubrange(range)
  }

  /// Remove the elements for which a closure is true. O(n + removed · log n); after an error
  /// nothing is removed.
  @inlinable
  public mutating func removeAll<E: Error>(
    where shouldRemove: (Element) throws(E) -> Bool
  ) throws(E) {
    var runs: [Range<Int>] = []
    var index = 0
    for element in self {
      if try shouldRemove(element) { runs.appendIndex(index) }
      index += 1
    }
    for run in runs.reversed() { removeSubrange(run) }
  }

  /// Remove all elements. O(n).
  @inlinable
  public mutating func removeAll() {
    content.removeAll()
    order.removeAll()
  }

  /// Replace the contents by those of another array, as a mutation of the transaction. O(changes ·
  /// log n) if both are of one lineage, else O(n). This array keeps its seed.
  @inlinable
  public mutating func replaceContents(with other: SyncIdentifiedArray) {
    replaceRows(with: other.content.trie)
    order.replaceContents(with: other.order.tree)
  }

  /// Replace the rows, noting also those of which only the label differs: the order that a
  /// roll-back restores needs the labels it had.
  @inlinable
  mutating func replaceRows(with trie: TrieMap<ID, Row>) {
    let old = content.trie
    if old.isIdentical(to: trie) { return }
    var new = trie
    new.adopt(seed: old.seed)
    _ = new.forEachDifference(from: old) { id, hash, old, new in
      if let old, let new, old.pointee.label == new.pointee.label,
        new.pointee.isSame(as: old.pointee)
      {
        return true
      }
      content.note(hash, id, old?.pointee)
      return true
    }
    content.map = new
  }
}

extension [Range<Int>] {
  /// Append an index that is not below the end of the last range, which it extends if it is
  /// adjacent.
  @inlinable
  mutating func appendIndex(_ index: Int) {
    if let last, last.upperBound == index {
      self[count - 1] = last.lowerBound..<index + 1
    } else {
      append(index..<index + 1)
    }
  }
}
