public import Values

// Theory of operation
//
// A selector is a description; what it has computed is remembered by a function that it makes, of which
// each store has one for all observers of the selector. The parts of a state are persistent values, so
// whether one is still the same is seen by its storage: a selector that reads a part of a state is not
// computed again because another part has changed.
//
// A selector over the children of a collection (`folding`) is not computed again at all: the children
// that differ from those that it has seen are taken out of its result, and put into it. The
// difference of two collections of one lineage costs what has changed.

/// A value that is computed from a state, and computed again only when what it is made of has changed
/// (in Redux Toolkit: `createSelector`).
///
///     extension Todos.State {
///       static let open = Selector.count(of: \Self.items) { !$1.isDone }
///       static let title = Selector(\Self.name, \Self.owner) { "\($0) of \($1)" }
///       static let heading = Selector(of: open, title) { "\($1): \($0)" }
///     }
///
///     for await count in store.observe(Todos.State.open) { … }
///     print(store[Todos.State.heading])
///
/// Make each once, in a `static let`: observers of one selector share what it has computed. Its
/// functions may use nothing but their arguments; they are called under a lock.
public final class Selector<State: Synchronizable, Output: Sendable>: Sendable {
  private let begin: @Sendable () -> (State) -> Output

  private init(begin: @escaping @Sendable () -> (State) -> Output) { self.begin = begin }

  /// Compute from properties, again when one of them has changed. O(1) while they share the storage
  /// that they had.
  public convenience init<each Input: Synchronizable>(
    _ properties: repeat any KeyPath<State, each Input> & Sendable,
    compute: @escaping @Sendable (repeat each Input) -> Output
  ) {
    self.init {
      var last: (inputs: (repeat each Input), output: Output)?
      return { state in
        let inputs = (repeat state[keyPath: each properties])
        if let last {
          var areSame = true
          for (old, new) in repeat (each last.inputs, each inputs) {
            areSame = areSame && new.isSame(as: old)
          }
          if areSame { return last.output }
        }
        let output = compute(repeat each inputs)
        last = (inputs, output)
        return output
      }
    }
  }

  /// Compute from what other selectors select, again when one of those values has changed.
  public convenience init<each Input: Equatable & Sendable>(
    of selectors: repeat Selector<State, each Input>,
    compute: @escaping @Sendable (repeat each Input) -> Output
  ) {
    self.init {
      let functions = (repeat (each selectors).begin())
      var last: (inputs: (repeat each Input), output: Output)?
      return { state in
        let inputs = (repeat (each functions)(state))
        if let last {
          var areSame = true
          for (old, new) in repeat (each last.inputs, each inputs) {
            areSame = areSame && old == new
          }
          if areSame { return last.output }
        }
        let output = compute(repeat each inputs)
        last = (inputs, output)
        return output
      }
    }
  }

  /// Put every child of a collection into a result. When children change, `remove` takes them out as
  /// they were, and `add` puts them in as they are, in any order: the result must depend neither on the
  /// order nor on how it came about. O(n) at first, then O(changes · log n).
  ///
  ///     Selector(folding: \Shop.State.orders, into: Money(0)) { $0 += $2.price } remove: { $0 -= $2.price }
  ///
  /// A result that is a large collection should be a persistent one (`TrieMap`): every reader gets a
  /// copy.
  public convenience init<Children: KeyedChildren>(
    folding children: any KeyPath<State, Children> & Sendable, into start: Output,
    add: @escaping @Sendable (inout Output, Children.ChildID, Children.ChildState) -> Void,
    remove: @escaping @Sendable (inout Output, Children.ChildID, Children.ChildState) -> Void
  ) {
    self.init {
      var output = start
      var last: Children?
      return { state in
        let new = state[keyPath: children]
        if let last {
          new.forEachChange(from: last) { id, old, new in
            if let old { remove(&output, id, old) }
            if let new { add(&output, id, new) }
          }
        } else {
          new.forEachChild { add(&output, $0, $1) }
        }
        last = new
        return output
      }
    }
  }

  /// What it selects from a state, computed anew.
  public func callAsFunction(_ state: State) -> Output { begin()(state) }

  /// A function that selects, and remembers what it has computed last: a call costs what has changed
  /// since the one before.
  public func remembering() -> (State) -> Output { begin() }
}

extension Selector {
  /// A property itself.
  public convenience init(_ property: any KeyPath<State, Output> & Sendable)
  where Output: Synchronizable {
    self.init { { $0[keyPath: property] } }
  }

  /// How many children of a collection fulfil a condition. O(n) at first, then O(changes · log n).
  public static func count<Children: KeyedChildren>(
    of children: any KeyPath<State, Children> & Sendable,
    where isCounted: @escaping @Sendable (Children.ChildID, Children.ChildState) -> Bool
  ) -> Selector where Output == Int {
    Selector(folding: children, into: 0) {
      if isCounted($1, $2) { $0 += 1 }
    } remove: {
      if isCounted($1, $2) { $0 -= 1 }
    }
  }

  /// The children of a collection that fulfil a condition, by their keys. O(n) at first, then
  /// O(changes · log n).
  public static func filter<Children: KeyedChildren>(
    _ children: any KeyPath<State, Children> & Sendable,
    where isIncluded: @escaping @Sendable (Children.ChildID, Children.ChildState) -> Bool
  ) -> Selector where Output == TrieMap<Children.ChildID, Children.ChildState> {
    Selector(folding: children, into: TrieMap(seed: HashSeed(.random(in: 0 ... .max)))) {
      if isIncluded($1, $2) { $0.updateValue($2, forKey: $1) }
    } remove: { result, id, _ in
      result.removeValue(forKey: id)
    }
  }

  /// The elements of an ordered collection that fulfil a condition, in their order. O(n) at first, then
  /// O(changes · log² n); a move is a change.
  ///
  ///     static let open = Selector.filter(\Self.todos) { !$0.isDone }
  public static func filter<Element: Synchronizable & Identifiable>(
    _ elements: any KeyPath<State, SyncIdentifiedArray<Element>> & Sendable,
    where isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> Selector where Output == SyncIdentifiedArray<Element> {
    Selector {
      var filter = OrderedFilter(isIncluded)
      return { filter.follow($0[keyPath: elements]) }
    }
  }
}

/// The elements of an array that fulfil a condition, kept as the array changes.
private struct OrderedFilter<Element: Synchronizable & Identifiable>
where Element.ID: SyncKey & Synchronizable {
  private typealias Elements = SyncIdentifiedArray<Element>

  private let isIncluded: (Element) -> Bool
  private var included = Elements()
  private var last: Elements?

  init(_ isIncluded: @escaping (Element) -> Bool) { self.isIncluded = isIncluded }

  mutating func follow(_ elements: SyncIdentifiedArray<Element>) -> SyncIdentifiedArray<Element> {
    defer { last = elements }
    guard let last else { return begin(with: elements) }
    var arriving: [Element] = []
    elements.forEachChangeOrMove(from: last) { id, _, element, mayHaveMoved in
      guard let element, isIncluded(element) else {
        included.remove(id: id)
        return
      }
      if !mayHaveMoved, included.contains(id: id) {
        included[id: id] = element
      } else {
        included.remove(id: id)
        arriving.append(element)
      }
    }
    // An array of another origin: to find a place for each takes longer than to begin again.
    if arriving.count > max(included.count, 100) { return begin(with: elements) }
    for element in arriving { included.insert(element, at: place(for: element.id, in: elements)) }
    return included
  }

  private mutating func begin(with elements: Elements) -> Elements {
    included = Elements(uniqueElements: elements.lazy.filter(isIncluded))
    return included
  }

  /// How many of the included elements come before an element. O(log² n).
  private func place(for id: Element.ID, in elements: Elements) -> Int {
    var (low, high) = (0, included.count)
    while low < high {
      let middle = low + (high - low) / 2
      if elements.isOrdered(included.ids[middle], before: id) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
