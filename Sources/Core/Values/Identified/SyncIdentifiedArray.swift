// Theory of operation
//
// The array is two collections: `rows`, a map from id to element, and `order`, an array of the ids.
// It travels as a struct of both, so a row has a path that does not depend on its position, a move
// is a splice of one id, and a peer that knows maps, arrays and structs knows this type.
//
// To find the position of an id, every row has a *label*, a number that rises along the order. The
// position is found by interpolation between labels, and by bisection every other step. Labels are
// local: they never travel, and equality ignores them. Processes with equal arrays may have
// different labels.
//
// Invariants, whenever no mutating method runs:
//  - The ids in `order` are the keys of `rows`, each once, and each the id of its element.
//  - Labels rise strictly along `order`.
// Bytes from a peer that break the first are refused (`SyncIdentifiedArray+Patching`).

/// An array of identified elements in a state: rows that keep their identity when others are
/// inserted, moved or removed.
///
///     @ObservableState struct State { var cards: SyncIdentifiedArray<Card> = [] }
///     state.cards.append(Card(id: 7))
///     state.cards[id: 7]?.title = "seven"
///     state.cards.move(id: 7, to: 0)
///
/// It travels as a struct of two fields: `rows` (0), a map from id to element, and `order` (1), an
/// array of the ids. So the row 17 of a field `cards` is at `/cards/rows/17`, whatever its
/// position, and the order at `/cards/order`; each can be observed, watched or permitted alone. A
/// move is two splices of one id, and the row does not travel. A policy that hides single rows does
/// not hide their ids in the order: a typed mirror refuses such a view, so hide the array or show
/// all rows.
///
/// Reading, writing, inserting, removing and moving one element cost O(log n) expected, whichever
/// names it: its id or its position. A copy is O(1). A row takes eight bytes more than in a
/// `SyncMap`, and its id in the order.
///
/// The id of an element must not change in place. As for `SyncMap`, assigning a whole other array
/// carries over the other's notes: a state without `@ObservableState` must assign with
/// `replaceContents(with:)`.
@frozen
public struct SyncIdentifiedArray<Element: Synchronizable & Identifiable>: Sendable
where Element.ID: SyncKey & Synchronizable {
  public typealias ID = Element.ID
  @usableFromInline typealias Ref = TrieRef<ID, Row>

  @usableFromInline var content: SyncMap<ID, Row>
  @usableFromInline var order: SyncArray<ID>

  @inlinable
  init(content: SyncMap<ID, Row>, order: SyncArray<ID>) {
    self.content = content
    self.order = order
  }

  /// An empty array, at the start of a transaction.
  @inlinable
  public init() { self.init(content: SyncMap(), order: SyncArray()) }

  /// An array of these elements, at the start of a transaction; their ids must differ. O(n).
  @inlinable
  public init(uniqueElements elements: some Sequence<Element>) {
    self.init(elements) { _, element in
      preconditionFailure("The ids of the elements must differ, and \(element.id) comes twice.")
    }
  }

  /// An array of these elements, at the start of a transaction. Elements with one id become the
  /// result of `combine(former, later)`, at the position of the first. O(n).
  @inlinable
  public init(
    _ elements: some Sequence<Element>, uniquingIDsWith combine: (Element, Element) -> Element
  ) {
    var rows = TrieMap<ID, Row>()
    var ids = TreeArrayBuilder<ID>()
    var label = OrderLabel.first
    for element in elements {
      let id = element.id
      if let former = rows[id] {
        let combined = combine(former.element, element)
        Self.requireSameID(combined, id)
        rows.updateValue(Row(combined, label: former.label), forKey: id)
        continue
      }
      rows.updateValue(Row(element, label: label), forKey: id)
      ids.append(id)
      label &+= OrderLabel.step
    }
    self.init(content: SyncMap(rows), order: SyncArray(TreeArray(root: ids.finish())))
  }

  // MARK: Reading

  /// The ids in their order. O(1), and equal to those of another array in O(1) if neither was
  /// inserted into, removed from or reordered since they were one.
  @inlinable public var ids: TreeArray<ID> { order.tree }

  /// The rows by id, in trie order. O(1).
  @inlinable public var rows: TrieMap<ID, Row> { content.trie }

  /// The elements in their order. O(n).
  @inlinable public var elements: [Element] { Array(self) }

  /// The seed that the ids are hashed with. O(1).
  @inlinable public var seed: HashSeed { content.seed }

  /// Whether an element has this id. O(log n).
  @inlinable
  public func contains(id: ID) -> Bool { content.contains(id) }

  /// The position of the element with this id, or nil. O(log n) expected: two to four look-ups of
  /// rows when insertions were spread out, and O(log n) look-ups at worst.
  @inlinable
  public func index(id: ID) -> Int? { label(of: id).map { index(of: id, label: $0) } }

  /// Whether both share the storage of their rows, and so hold the same elements. O(1).
  @inlinable
  public func hasIdenticalRows(to other: SyncIdentifiedArray) -> Bool {
    content.isIdentical(to: other.content)
  }
}

extension SyncIdentifiedArray: ExpressibleByArrayLiteral, Equatable, CustomStringConvertible {
  /// An array of these elements, whose ids must differ.
  @inlinable
  public init(arrayLiteral elements: Element...) { self.init(uniqueElements: elements) }

  /// Whether both encode to the same bytes.
  @inlinable
  public static func == (first: SyncIdentifiedArray, second: SyncIdentifiedArray) -> Bool {
    first.isSame(as: second)
  }

  public var description: String { Array(self).description }
}
