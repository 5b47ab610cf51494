extension SyncIdentifiedArray: RandomAccessCollection {
  @inlinable public var startIndex: Int { 0 }
  @inlinable public var endIndex: Int { order.count }
  @inlinable public var count: Int { order.count }
  @inlinable public var isEmpty: Bool { order.isEmpty }
  @inlinable public func index(after index: Int) -> Int { index + 1 }
  @inlinable public func index(before index: Int) -> Int { index - 1 }
  @inlinable public func index(_ index: Int, offsetBy distance: Int) -> Int { index + distance }
  @inlinable public func distance(from start: Int, to end: Int) -> Int { end - start }

  /// The element at a position. O(log n); it is changed in place, and its id must stay.
  @inlinable
  public subscript(position: Int) -> Element {
    get { self.element(of: order[position]) }
    _modify {
      let id = order[position]
      let row = presentRow(id)
      defer { Self.requireSameID(row.pointee.element, id) }
      yield &row.pointee.element
    }
  }

  /// Iterates in order over the array as it was when the iterator was made.
  @frozen
  public struct Iterator: IteratorProtocol {
    @usableFromInline let rows: TrieMap<ID, Row>
    @usableFromInline var ids: TreeArray<ID>.Iterator

    @inlinable
    init(_ rows: TrieMap<ID, Row>, _ ids: TreeArray<ID>) {
      self.rows = rows
      self.ids = ids.makeIterator()
    }

    /// The next element, or nil at the end. O(log n).
    @inlinable
    public mutating func next() -> Element? { ids.next().flatMap { rows[$0]?.element } }
  }

  @inlinable
  public func makeIterator() -> Iterator { Iterator(content.trie, order.tree) }
}

// MARK: - By id

extension SyncIdentifiedArray {
  /// The element with this id, or nil. Changing it through the subscript, as in `cards[id:
  /// 7]?.title = x`, changes it in place. Assigning nil removes it; assigning an element, which
  /// must have this id, replaces it at its position or appends it. O(log n) expected.
  @inlinable
  public subscript(id id: ID) -> Element? {
    get { content.trie[id]?.element }
    set {
      guard let newValue else {
        remove(id: id)
        return
      }
      Self.requireSameID(newValue, id)
      updateOrAppend(newValue)
    }
    _modify {
      var access = openRow(id)
      defer { closeRow(&access, id) }
      yield &access.element
    }
  }

  /// Change the element with this id in place. Returns the result of `body`, or nil, without
  /// calling it or touching anything, when there is none. O(log n).
  @inlinable
  public mutating func modifyElement<R, E: Error>(
    id: ID, _ body: (inout Element) throws(E) -> R
  ) throws(E) -> R? {
    try content.modifyValue(forKey: id) { (row) throws(E) in
      defer { Self.requireSameID(row.element, id) }
      return try body(&row.element)
    }
  }

  /// A row that is taken out of the map while it is changed through the subscript.
  @usableFromInline
  struct RowAccess {
    @usableFromInline let slot: UnsafeMutablePointer<Row?>
    @usableFromInline let label: UInt64
    @usableFromInline var element: Element?

    @inlinable
    init(slot: UnsafeMutablePointer<Row?>, label: UInt64, element: Element?) {
      self.slot = slot
      self.label = label
      self.element = element
    }
  }

  @inlinable
  mutating func openRow(_ id: ID) -> RowAccess {
    let slot = content.openSlot(id)
    let row = slot.move()
    slot.initialize(to: nil)
    return RowAccess(slot: slot, label: row?.label ?? OrderLabel.none, element: row?.element)
  }

  /// Put the row back, or insert or remove it. The access was exclusive, so the slot is still
  /// valid.
  @inlinable
  mutating func closeRow(_ access: inout RowAccess, _ id: ID) {
    let element = access.element.take()
    if let element { Self.requireSameID(element, id) }
    switch (access.label, element) {
    case (OrderLabel.none, nil): break
    case (OrderLabel.none, let element?): insertNew(element, at: count)
    case (let label, let element?): access.slot.pointee = Row(element, label: label)
    case (let label, nil):
      content.removeEmptied(id)
      order.remove(at: index(of: id, label: label))
    }
  }

  /// The element with an id that is in the order.
  @inlinable
  func element(of id: ID) -> Element {
    guard let row = content.trie[id] else { preconditionFailure("The order names no row: \(id).") }
    return row.element
  }

  /// The row with an id that is in the order, ready to be changed.
  @inlinable
  mutating func presentRow(_ id: ID) -> UnsafeMutablePointer<Row> {
    content.slotInserting(id) { preconditionFailure("The order names no row: \(id).") }
  }

  @inlinable
  static func requireSameID(_ element: Element, _ id: ID) {
    precondition(
      ID.isSame(element.id, id),
      "The id of an element cannot change in its array: remove it and insert one with the new id.")
  }
}

extension SyncMap {
  /// Remove a key whose noted value was taken out of its slot.
  @inlinable
  mutating func removeEmptied(_ key: Key) { _ = map.remove(key, key.hash(seed: map.seed)) }
}
