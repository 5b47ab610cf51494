import Lockstep
import LockstepTesting
import Testing

/// A shelf of records in an order, whose player is set by fields, and whose reviews are loaded.
private struct Shelf: Reducer {
  @ObservableState struct Record: Equatable, Identifiable {
    var id: Int
    var title: String
    var mood = Mood.unknown
  }

  @ObservableState enum Mood: Equatable {
    case calm, wild
    @Fallback case unknown
  }

  @ObservableState struct State: Equatable {
    var records: SyncIdentifiedArray<Record> = []
    @Settable var volume = 5
    var review = Loadable<String, String>()
    @Ephemeral var listeners = Present<String>()

    static let wild = Selector.count(of: \State.records) { $1.mood == .wild }
  }

  @Action enum RecordAction: Equatable, Sendable { case judge(Mood) }

  @Action enum Action: Equatable, Sendable {
    case put(String)
    case move(Record.ID, to: Int)
    case record(Record.ID, RecordAction)
    case set(State.Setting)
    case review(LoadableAction<String, String>)
    case listeners(Presence<String>.Action)
  }

  struct Judge: Reducer {
    func reduce(into record: inout Record, action: RecordAction) -> Effect<RecordAction> {
      if case .judge(let mood) = action { record.mood = mood }
      return .none
    }
  }

  /// Refuses a high volume while there are records.
  struct Neighbour: Middleware {
    func before(
      _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
    ) throws(Rejection) -> MiddlewareVerdict {
      if case .set(.volume(11...)) = action, !state.records.isEmpty {
        throw Rejection(.refused, "the neighbours sleep")
      }
      return .proceed
    }
  }

  @Dependency(\.uuid) private var uuid

  var body: some Reducer<State, Action> {
    BindingReducer()
    Scope(state: \.listeners, action: \.listeners) { Presence<String>() }
    Reduce { state, action in
      switch action {
      case .put(let title):
        state.records.append(Record(id: state.records.count + 1, title: title))
      case .move(let id, let index): state.records.move(id: id, to: index)
      case .record, .set, .review, .listeners: break
      }
      return .none
    }
    .forEach(\.records, action: \.record) { Judge() }
    .loading(\.review, action: \.review, for: \.volume) { volume in "heard at \(volume)" }
  }
}

@Suite struct WholeTests {
  @Test func `in a test store`() async {
    let store = TestStore(initialState: Shelf.State()) { Shelf() }
    await store.send(.put("Blue")) { $0.records = [.init(id: 1, title: "Blue")] }
    await store.send(.put("Red")) { $0.records.append(.init(id: 2, title: "Red")) }
    await store.send(.move(2, to: 0)) { $0.records.move(id: 2, to: 0) }
    await store.send(.record(2, .judge(.wild))) { $0.records[id: 2]?.mood = .wild }
    #expect(Shelf.State.wild(store.state) == 1)
    await store.send(.set(.volume(7))) { $0.volume = 7 }
    await store.send(.review(.load)) { $0.review.begin() }
    await store.receive(.review(.loaded("heard at 7"))) { $0.review = .loaded("heard at 7") }
    await store.finish()
  }

  @Test func `a middleware refuses by the state`() throws {
    let store = try SyncTestStore(
      initialState: Shelf.State(), middleware: [Shelf.Neighbour()], seed: 3
    ) { Shelf() }
    let early = try store.send(.set(.volume(11)), from: 0)
    try store.send(.put("Blue"), from: 0)
    let late = try store.send(.set(.volume(12)), from: 0)
    try store.settle()
    #expect(store.outcome(of: early) == .reduced && store.state.volume == 11)
    #expect(
      store.outcome(of: late) == .rejected(Rejection(.refused, "the neighbours sleep")))
  }

  @Test func `in a daemon with mirrors`() throws {
    let store = try SyncTestStore(initialState: Shelf.State(), seed: 3) { Shelf() }
    for title in ["Blue", "Red", "Green"] { try store.send(.put(title), from: 0) }
    try store.send(.move(3, to: 0), from: 1)
    try store.send(.set(.volume(9)), from: 0)
    try store.send(.record(2, .judge(.calm)), from: 1)
    try store.settle()
    #expect(store.state.records.map(\.id) == [3, 1, 2])
    #expect(store.mirror(0).state == store.state && store.mirror(1).state == store.state)
    #expect(store.state.volume == 9 && store.state.records[id: 2]?.mood == .calm)
  }
}
