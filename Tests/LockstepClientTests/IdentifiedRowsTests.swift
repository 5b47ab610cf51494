import CBOR
import Lockstep
import LockstepClient
import LockstepStore
import Testing
import Values

/// A list of panels in an order of its own.
private struct List: Reducer {
  struct Item: HandWritten, Equatable, Identifiable {
    var id = 0
    var value = 0

    static var parts: [any FieldCoding<Item>] {
      [Coded(0, "id", \Item.id), Coded(1, "value", \Item.value)]
    }
  }

  struct State: HandWritten, Equatable {
    var title = ""
    var items: SyncIdentifiedArray<Item> = []

    static var parts: [any FieldCoding<State>] {
      [Coded(0, "title", \State.title), Coded(1, "items", \State.items)]
    }

    init() {}
    init(_ ids: Int...) { items = .init(uniqueElements: ids.map { Item(id: $0) }) }
  }

  enum ItemAction: WrittenAction {
    case set(Int)

    var name: String { "set" }
    var words: [String] { if case .set(let value) = self { ["set", "\(value)"] } else { [] } }
    init?(words: ArraySlice<Substring>) {
      self = .set(words.dropFirst().first.flatMap { Int($0) } ?? 0)
    }
    static var allCasePaths: Void { () }
  }

  enum Action: WrittenAction {
    case add(Int)
    case move(Int, Int)
    case remove(Int)
    case item(Int, ItemAction)

    var name: String { words[0] }

    var words: [String] {
      switch self {
      case .add(let id): ["add", "\(id)"]
      case .move(let id, let index): ["move", "\(id)", "\(index)"]
      case .remove(let id): ["remove", "\(id)"]
      case .item(let id, let action): ["item", "\(id)"] + action.words
      }
    }

    init?(words: ArraySlice<Substring>) {
      let numbers = words.dropFirst().compactMap { Int($0) }
      switch words.first {
      case "add": self = .add(numbers[0])
      case "move": self = .move(numbers[0], numbers[1])
      case "remove": self = .remove(numbers[0])
      case "item": self = .item(numbers[0], .set(numbers[1]))
      default: return nil
      }
    }

    struct AllCasePaths: Sendable {
      var item: CasePath<Action, (Int, ItemAction)> {
        CasePath(
          embed: { .item($0.0, $0.1) },
          extract: { if case .item(let id, let action) = $0 { (id, action) } else { nil } })
      }
      /// As the macro makes it of `case labelled(id: Int, action: ItemAction)`.
      var labelled: CasePath<Action, (id: Int, action: ItemAction)> {
        CasePath(
          embed: { .item($0.id, $0.action) },
          extract: { if case .item(let id, let action) = $0 { (id, action) } else { nil } })
      }
      var whole: CasePath<Action, Action> { CasePath(embed: { $0 }, extract: { $0 }) }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .add(let id): state.items.append(Item(id: id))
      case .move(let id, let index): state.items.move(id: id, to: index)
      case .remove(let id): state.items.remove(id: id)
      case .item: break
      }
      return .none
    }
    .forEach(\.items, action: \.item) {
      Reduce<Item, ItemAction> { state, action in
        if case .set(let value) = action { state.value = value }
        return .none
      }
    }
  }
}

/// The values of a property, each as often as the property's observers are notified of it.
private func values<S: ObservableStore, T: Synchronizable>(
  of store: S, _ property: any KeyPath<S.State, T> & Sendable
) -> Recorder<T> {
  let recorder = Recorder<T>()
  record(recorder) { [weak store] in store?[dynamicMember: property] }
  return recorder
}

@Suite struct IdentifiedRowsTests {
  /// Sends the same actions, and checks that each observer was notified of its part alone.
  private func observe<S: ObservableStore>(
    _ store: S, _ send: (List.Action) async throws -> Void
  ) async rethrows where S.State == List.State {
    let whole = values(of: store, \.items)
    let order = values(of: store, \.items.ids)
    let count = values(of: store, \.items.count)
    let second = values(of: store, \.items[id: 2])
    let title = values(of: store, \.title)
    let actions: [List.Action] = [
      .item(2, .set(5)), .item(1, .set(6)), .move(3, 0), .add(4), .move(2, 0), .remove(2),
    ]
    for (index, action) in actions.enumerated() {
      try await send(action)
      // Every action changes the array.
      await eventually { whole.count == index + 2 }
    }
    await eventually { order.count == 5 && second.count == 3 && count.count == 3 }
    #expect(whole.all.map { $0.map(\.id) }.suffix(2) == [[2, 3, 1, 4], [3, 1, 4]])
    #expect(
      order.all.map { Array($0) }
        == [[1, 2, 3], [3, 1, 2], [3, 1, 2, 4], [2, 3, 1, 4], [3, 1, 4]])
    #expect(count.all == [3, 4, 3])
    #expect(second.all == [List.Item(id: 2), List.Item(id: 2, value: 5), nil])
    #expect(title.all == [""])
  }

  @Test("RED-05 RDX-17: a store notifies of one row, the order, the count and the whole apart")
  func store() async {
    let store = LockstepStore.Store.unchecked(initialState: List.State(1, 2, 3)) { List() }
    await observe(store) { store.send($0) }
  }

  @Test("RED-05 RDX-17: a mirror notifies of one row, the order, the count and the whole apart")
  func mirror() async throws {
    try await withDaemon(of: List(), state: List.State(1, 2, 3)) { socket, _ in
      let mirror = try await MirrorStore<List>.connect(.at(socket))
      try await observe(mirror) { try await mirror.send($0) }
      var orders = mirror.observe(\.items.ids).makeAsyncIterator()
      #expect(await orders.next().map { Array($0) } == [3, 1, 4])
      try await mirror.send(.item(1, .set(7)))
      try await mirror.send(.move(4, 0))
      #expect(await orders.next().map { Array($0) } == [4, 3, 1])
    }
  }

  @Test("TCA-12: a store of one row follows it through moves of others and of itself")
  func scopedRow() {
    let store = LockstepStore.Store.unchecked(initialState: List.State(1, 2, 3)) { List() }
    let row = store.scope(state: \.items, id: 2, action: \.item)
    let values = Recorder<Int?>()
    record(values) { .some(row.value) }
    store.send(.move(3, 0))
    row.send(.set(4))
    store.send(.move(2, 0))
    store.send(.remove(1))
    #expect(row.state == List.Item(id: 2, value: 4) && store.items.first == row.state)
    store.send(.remove(2))
    #expect(row.state == nil && values.all == [0, 4, nil])
  }

  @Test("TCA-12: a store of one row of a part; the row's action may have labels")
  func scopedRowOfPart() {
    let store = LockstepStore.Store.unchecked(initialState: List.State(1, 2)) { List() }
    let part = store.scope(state: \.self, action: \.whole)
    let (first, second) = (
      part.scope(state: \.items, id: 1, action: \.item),
      part.scope(state: \.items, id: 2, action: \.labelled)
    )
    first.send(.set(3))
    second.send(.set(4))
    store.scope(state: \.items, id: 2, action: \.labelled).send(.set(5))
    #expect(first.state == List.Item(id: 1, value: 3) && second.state == List.Item(id: 2, value: 5))
    store.send(.remove(1))
    #expect(first.state == nil && second.state == store.items.first)
  }

  @Test("TCA-12: a mirror of one row gets that row's patches alone, by its id")
  func mirroredRow() async throws {
    try await withDaemon(of: List(), state: List.State(1, 2, 3)) { socket, _ in
      let mirror = try await MirrorStore<List>.connect(.at(socket))
      let row = try await mirror.scope(state: \.items, id: 2, action: \.item)
      #expect(row.subscription.path == [1, 0, 2])
      try await mirror.send(.move(2, 0))
      try await mirror.send(.item(1, .set(9)))
      try await row.send(.set(4))
      #expect(row.state == List.Item(id: 2, value: 4))
      await eventually { mirror.state.items.first == row.state }
      try await mirror.send(.remove(2))
      await eventually { row.state == nil }
      try await mirror.send(.add(2))
      await eventually { row.state == List.Item(id: 2) && mirror.state.items.last == row.state }
      // By a case with labels, and by a connection that has nothing else.
      let labelled = try await mirror.scope(state: \.items, id: 2, action: \.labelled)
      try await labelled.send(.set(6))
      let alone = try await MirrorStore<List>.connect(
        to: \.items, id: 2, action: \.labelled, .at(socket))
      #expect(alone.state == List.Item(id: 2, value: 6) && alone.subscription.path == [1, 0, 2])
      try await alone.send(.set(7))
      await eventually { row.state == alone.state && labelled.state == alone.state }
      await alone.connection.finish()
    }
  }
}
