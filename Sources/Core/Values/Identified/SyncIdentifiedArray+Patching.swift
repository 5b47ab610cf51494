public import CBOR

// A patch changes rows and order independently, so a peer could make them disagree. What the patch
// touched is checked after it, by labels:
//
//  1. Ids that left the order lose their labels; ids that came into it must have a row without one.
//  2. Every touched row must have a label then, and the id under which it is.
//  3. There are as many rows as ids in the order.
//
// A row that nothing touched keeps its label and its position. So by 2 every row is in the order at
// least once, and by 3 exactly once, and the order names nothing else.
extension SyncIdentifiedArray {
  /// Apply the next item, a patch, as a mutation of the transaction. An error if rows and order have
  /// different ids after it. After an error the transaction is rolled back, so that the array is
  /// sound. A mirror, which never settles, ends its transaction with `adopt(seed:)`. O(what it
  /// touches · log n).
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if seed != content.seed { content.rehash(seed: seed) }
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      return replaceContents(with: whole)
    }
    do throws(CBORError) {
      try edit(by: &decoder, seed: seed)
    } catch {
      rollBack()
      throw error
    }
  }

  @inlinable
  mutating func edit(by decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    var check = OrderCheck<Element>(at: start)
    for _ in 0..<(try StructureCoding.openPatch(&decoder)) {
      switch try decoder.unsigned() {
      case 0: try applyRows(&decoder, seed: seed, &check)
      case 1: try applyOrder(&decoder, seed: seed, &check)
      default: try decoder.skip()
      }
    }
    decoder.close()
    try settleLabels(check)
  }

  @inlinable
  mutating func applyRows(
    _ decoder: inout CBORDecoder, seed: HashSeed, _ check: inout OrderCheck<Element>
  ) throws(CBORError) {
    if let whole = try TrieMap<ID, Row>.replacement(from: &decoder, seed: seed) {
      check.isWhole = true
      return replaceRows(with: whole)
    }
    for _ in 0..<(try TrieMap<ID, Row>.openPatch(&decoder)) {
      check.touched.append(try content.applyEntry(&decoder, seed: seed))
    }
    decoder.close()
  }

  @inlinable
  mutating func applyOrder(
    _ decoder: inout CBORDecoder, seed: HashSeed, _ check: inout OrderCheck<Element>
  ) throws(CBORError) {
    // A second patch of the order in one patch would move the positions that the first recorded.
    check.isWhole = check.isWhole || check.hasOrder
    check.hasOrder = true
    if let whole = try TreeArray<ID>.replacement(from: &decoder, seed: seed) {
      check.isWhole = true
      return order.replaceContents(with: whole)
    }
    order.note()
    let wasAdopted = order.storage.root?.hasAdopted(seed) ?? true
    var patch = OrderPatch(order.storage)
    try patch.applyParts(&decoder, seed: seed)
    order.storage = patch.ids
    if wasAdopted { order.storage.adopt(seed: seed) }
    check.isWhole = check.isWhole || patch.isDisordered
    check.touched += patch.removed
    check.removed = patch.removed
    check.changed = patch.changed
  }

  /// Check that rows and order agree, and label the rows that came into the order.
  @inlinable
  mutating func settleLabels(_ check: OrderCheck<Element>) throws(CBORError) {
    guard content.count == order.count else {
      throw check.error("an order of \(order.count) ids over \(content.count) rows")
    }
    if check.isWhole { return try labelAll(check) }
    for id in check.removed { setLabel(of: id, OrderLabel.none) }
    for run in check.changed {
      for index in run { try setPending(order[index], check) }
    }
    for id in check.touched { try requireSound(id, check) }
    for run in check.changed { label(run) }
  }

  /// Check and label all rows. O(n).
  @inlinable @inline(never)
  mutating func labelAll(_ check: OrderCheck<Element>) throws(CBORError) {
    for id in order { setLabel(of: id, OrderLabel.none) }
    for id in order {
      try setPending(id, check)
      try requireSound(id, check)
    }
    setLabels(of: 0..<count, from: OrderLabel.first, by: OrderLabel.step)
  }

  @inlinable
  mutating func setPending(_ id: ID, _ check: OrderCheck<Element>) throws(CBORError) {
    guard let label = label(of: id) else { throw check.error("\(id) in the order without a row") }
    guard label == OrderLabel.none else { throw check.error("\(id) in the order twice") }
    setLabel(of: id, OrderLabel.pending)
  }

  @inlinable
  func requireSound(_ id: ID, _ check: OrderCheck<Element>) throws(CBORError) {
    guard let row = content.trie[id] else { return }
    guard row.label != OrderLabel.none else {
      throw check.error("the row \(id), which is not in the order")
    }
    guard ID.isSame(row.element.id, id) else {
      throw check.error("the element \(row.element.id) in the row \(id)")
    }
  }
}

/// What a patch of a `SyncIdentifiedArray` touched, and must be checked after it.
@usableFromInline
struct OrderCheck<Element: Synchronizable & Identifiable>
where Element.ID: SyncKey & Synchronizable {
  @usableFromInline typealias ID = Element.ID
  @usableFromInline typealias Row = SyncIdentifiedArray<Element>.Row

  /// The offset of the patch, for errors.
  @usableFromInline let offset: Int
  /// Whether everything must be checked, since rows or order were replaced.
  @usableFromInline var isWhole = false
  /// Whether the patch changed the order.
  @usableFromInline var hasOrder = false
  /// The ids of the rows to check: those that were changed, and those that left the order.
  @usableFromInline var touched: [ID] = []
  /// The ids that left the order.
  @usableFromInline var removed: [ID] = []
  /// The positions of ids that came into the order, or were moved.
  @usableFromInline var changed: [Range<Int>] = []

  @inlinable
  init(at offset: Int) { self.offset = offset }

  @usableFromInline
  func error(_ text: String) -> CBORError { CBORError(.notAllowed(text), at: offset) }

  /// Label decoded rows in their order, and check that both agree. O(n).
  @inlinable
  static func label(
    _ rows: inout TrieMap<ID, Row>, in ids: TreeArray<ID>, at offset: Int
  ) throws(CBORError) {
    let check = OrderCheck(at: offset)
    guard rows.count == ids.count else {
      throw check.error("an order of \(ids.count) ids over \(rows.count) rows")
    }
    var label = OrderLabel.first
    for id in ids {
      guard let entry = rows.uniqueEntry(id, id.hash(seed: rows.seed)) else {
        throw check.error("\(id) in the order without a row")
      }
      let row = TrieRef<ID, Row>.value(entry)
      guard row.pointee.label == OrderLabel.none else {
        throw check.error("\(id) in the order twice")
      }
      guard ID.isSame(row.pointee.element.id, id) else {
        throw check.error("the element \(row.pointee.element.id) in the row \(id)")
      }
      row.pointee.label = label
      label &+= OrderLabel.step
    }
  }
}
