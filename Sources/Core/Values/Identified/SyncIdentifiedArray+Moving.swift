// A move changes the order and one label. Rows do not travel, and the order keeps the nodes between
// the two positions, so that the patch is two splices.
extension SyncIdentifiedArray {
  /// Move the element with this id to a position, which is the one it has afterwards. Returns
  /// false, and changes nothing, when there is none. O(log n) expected.
  @inlinable
  @discardableResult
  public mutating func move(id: ID, to index: Int) -> Bool {
    precondition(index >= 0 && index < Swift.max(count, 1), "The index is outside the array.")
    guard let from = self.index(id: id) else { return false }
    move(from: from, to: index)
    return true
  }

  /// Move the element with this id in front of another. Returns false, and changes nothing, when
  /// either is missing. O(log n) expected.
  @inlinable
  @discardableResult
  public mutating func move(id: ID, before other: ID) -> Bool {
    guard let from = index(id: id), let to = index(id: other) else { return false }
    if from != to { move(from: from, to: from < to ? to - 1 : to) }
    return true
  }

  /// Move the element with this id behind another. Returns false, and changes nothing, when either
  /// is missing. O(log n) expected.
  @inlinable
  @discardableResult
  public mutating func move(id: ID, after other: ID) -> Bool {
    guard let from = index(id: id), let to = index(id: other) else { return false }
    if from != to { move(from: from, to: from < to ? to : to + 1) }
    return true
  }

  /// Move the element at one position to another, which is the one it has afterwards. O(log n).
  @inlinable
  public mutating func move(from: Int, to: Int) {
    precondition(
      from >= 0 && from < count && to >= 0 && to < count, "The index is outside the array.")
    if from == to { return }
    let id = order.remove(at: from)
    order.insert(id, at: to)
    let label = OrderLabel.run(
      of: 1, between: to == 0 ? nil : self.label(at: to - 1),
      and: to == count - 1 ? nil : self.label(at: to + 1))
    setLabel(of: id, label?.start ?? OrderLabel.pending)
    if label == nil { relabel(around: to..<to + 1) }
  }

  /// Move the elements at some positions, in their order, in front of the one that is now at
  /// `destination`, or to the end: as `onMove` of a list. O(their number · log n).
  @inlinable
  public mutating func move(fromOffsets offsets: some Sequence<Int>, toOffset destination: Int) {
    precondition(destination >= 0 && destination <= count, "The index is outside the array.")
    let sources = Set(offsets).sorted()
    let moved = sources.map { order[$0] }
    let start = destination - sources.count { $0 < destination }
    for index in sources.reversed() { order.remove(at: index) }
    order.insert(contentsOf: moved, at: start)
    for id in moved { setLabel(of: id, OrderLabel.pending) }
    label(start..<start + moved.count)
  }

  /// Exchange the elements at two positions. O(log n).
  @inlinable
  public mutating func swapAt(_ first: Int, _ second: Int) {
    let (a, b) = (order[first], order[second])
    if first == second { return }
    (order[first], order[second]) = (b, a)
    let (labelOfA, labelOfB) = (label(of: a), label(of: b))
    if let labelOfA { setLabel(of: b, labelOfA) }
    if let labelOfB { setLabel(of: a, labelOfB) }
  }

  // MARK: Sorting

  /// Sort the elements; equal ones keep their order. O(n log n) comparisons. Only those outside of
  /// the longest part that is in order already are moved, so a small disorder makes a small patch.
  /// After an error nothing is moved.
  @inlinable
  public mutating func sort(
    by areInIncreasingOrder: (Element, Element) throws -> Bool
  ) rethrows {
    let elements = Array(self)
    reorder(
      try elements.indices.sorted { try areInIncreasingOrder(elements[$0], elements[$1]) })
  }

  /// Reverse the order. O(n).
  @inlinable
  public mutating func reverse() { reorder(Array((0..<count).reversed())) }

  /// Shuffle the order. O(n).
  @inlinable
  public mutating func shuffle(using generator: inout some RandomNumberGenerator) {
    reorder(Array(0..<count).shuffled(using: &generator))
  }

  /// Make the order that of a permutation: `sources[i]` is the present position of the element that
  /// comes to position i. O(n + moved · log n).
  @inlinable
  mutating func reorder(_ sources: [Int]) {
    let kept = Self.kept(sources)
    if kept.count == count { return }
    if count - kept.count > count / 4 { return reorderAll(sources) }
    let old = order.tree
    var isKept = [Bool](repeating: false, count: count)
    for (source, _) in kept { isKept[source] = true }
    for source in (0..<count).reversed() where !isKept[source] { order.remove(at: source) }
    var runs: [Range<Int>] = []
    for (index, source) in sources.enumerated() where !isKept[source] {
      order.insert(old[source], at: index)
      setLabel(of: old[source], OrderLabel.pending)
      runs.appendIndex(index)
    }
    for run in runs { label(run) }
  }

  /// Most elements move: a new order costs less than moving each.
  @inlinable
  mutating func reorderAll(_ sources: [Int]) {
    let old = Array(order.tree)
    order.replaceContents(with: TreeArray(sources.lazy.map { old[$0] }))
    setLabels(of: 0..<count, from: OrderLabel.first, by: OrderLabel.step)
  }

  /// The longest part of a permutation that rises: pairs of source and position.
  @inlinable
  static func kept(_ sources: [Int]) -> ContiguousArray<(Int, Int)> {
    var pairs = ContiguousArray<(Int, Int)>()
    pairs.reserveCapacity(sources.count)
    var isRising = true
    for (index, source) in sources.enumerated() {
      pairs.append((source, index))
      isRising = isRising && source == index
    }
    return isRising ? pairs : TreeArrayDifference<ID>.rising(pairs)
  }
}

extension SyncIdentifiedArray where Element: Comparable {
  /// Sort the elements; equal ones keep their order. As `sort(by:)`.
  @inlinable
  public mutating func sort() { sort(by: <) }
}

// MARK: Following

extension SyncIdentifiedArray {
  /// Pass each row that was inserted, removed or changed, or that may have moved among the others, to
  /// `body`: its id, the element before and now, and whether it may have moved. Rows that are not passed
  /// have the order that they had. O(changes · log n) for arrays of one lineage, else O(n).
  package func forEachChangeOrMove(
    from old: SyncIdentifiedArray,
    _ body: (ID, _ old: Element?, _ new: Element?, _ mayHaveMoved: Bool) -> Void
  ) {
    // Labels rise along the order of either array, so rows with the labels that they had have the
    // order that they had.
    rows.forEachCandidate(from: old.rows) { id, old, new in
      let mayHaveMoved = old?.label != new?.label
      if !mayHaveMoved, let old, let new, new.isSame(as: old) { return true }
      body(id, old?.element, new?.element, mayHaveMoved)
      return true
    }
  }

  /// Whether the row of one id comes before that of another. O(log n). Both must be there.
  package func isOrdered(_ first: ID, before second: ID) -> Bool {
    (label(of: first) ?? OrderLabel.none) < (label(of: second) ?? OrderLabel.none)
  }
}
