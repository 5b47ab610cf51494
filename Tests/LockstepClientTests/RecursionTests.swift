import CBOR
import Lockstep
import LockstepClient
import LockstepStore
import Testing
import Values

/// A feature that contains itself: a row with rows.
private struct Tree: Reducer {
  struct State: HandWritten, Equatable {
    var name = ""
    var rows: SyncMap<Int, State> = [:]

    static var parts: [any FieldCoding<State>] {
      [Coded(0, "name", \State.name), Coded(1, "rows", \State.rows)]
    }
  }

  indirect enum Action: WrittenAction {
    case rename(String)
    case add(Int)
    case row(Int, Action)

    var name: String { words[0] }

    var words: [String] {
      switch self {
      case .rename(let name): ["rename", name]
      case .add(let id): ["add", "\(id)"]
      case .row(let id, let action): ["row", "\(id)"] + action.words
      }
    }

    init?(words: ArraySlice<Substring>) {
      let rest = words.dropFirst()
      switch words.first {
      case "rename": self = .rename(String(rest.first ?? ""))
      case "add": self = .add(rest.first.flatMap { Int($0) } ?? 0)
      case "row":
        guard let action = Action(words: rest.dropFirst()) else { return nil }
        self = .row(rest.first.flatMap { Int($0) } ?? 0, action)
      default: return nil
      }
    }

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, (Int, Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .rename(let name): state.name = name
      case .add(let id): state.rows[id] = State()
      case .row: break
      }
      return .none
    }
    .forEach(\.rows, action: \.row) { Tree() }
  }

  var lifecycle: Lifecycle<State, Action> { .onStart { .rename("\($0)") } }

  /// Three levels of rows.
  static var grown: State {
    State(rows: [1: State(rows: [2: State()]), 3: State()])
  }
}

@Suite struct RecursionTests {
  @Test("2.1.9: in a store of a recursive feature every row is told of the start")
  func store() {
    for reducer in [Reduce(Tree()), Reduce(Tree().logging { _, _ in })] {
      let store = LockstepStore.Store.unchecked(initialState: Tree.grown) { reducer }
      #expect(store.state.rows[1]?.rows[2]?.name == "first" && store.state.name == "first")
      #expect(store.log.all.count == 4)
      store.send(.row(1, .row(2, .add(5))))
      store.send(.row(1, .row(2, .row(5, .rename("deep")))))
      #expect(store.state.rows[1]?.rows[2]?.rows[5]?.name == "deep")
    }
  }

  @Test("2.1.9: a daemon of a recursive feature starts, and mirrors follow every depth")
  func daemon() async throws {
    try await withDaemon(of: Tree(), state: Tree.grown) { socket, _ in
      let mirror = try await MirrorStore<Tree>.connect(.init(socket: socket, label: "test"))
      #expect(mirror.state.rows[1]?.rows[2]?.name == "first")
      try await mirror.send(.row(1, .row(2, .add(5))))
      try await mirror.send(.row(1, .row(2, .row(5, .rename("deep")))))
      #expect(mirror.state.rows[1]?.rows[2]?.rows[5]?.name == "deep")
      let other = try await MirrorStore<Tree>.connect(.init(socket: socket, label: "test"))
      #expect(
        other.state == mirror.state && other.subscription.digest == mirror.subscription.digest)
      await mirror.connection.finish()
    }
  }
}
