import Lockstep
import LockstepClient
import Testing
import Values

/// Boards under keys: a row of them may be absent, and so may what is in it.
private struct Hall: Reducer {
  struct State: HandWritten {
    var boards: SyncMap<Int, BoardState> = [:]

    static var parts: [any FieldCoding<State>] { [Coded(0, "boards", \State.boards)] }
  }

  enum Action: WrittenAction {
    case open(Int)
    case close(Int)
    case board(Int, BoardAction)

    var name: String { words[0] }

    var words: [String] {
      switch self {
      case .open(let id): ["open", "\(id)"]
      case .close(let id): ["close", "\(id)"]
      case .board(let id, let action): ["board", "\(id)"] + action.words
      }
    }

    init?(words: ArraySlice<Substring>) {
      guard let id = words.dropFirst().first.flatMap({ Int($0) }) else { return nil }
      switch words.first {
      case "open": self = .open(id)
      case "close": self = .close(id)
      default:
        guard let action = BoardAction(words: words.dropFirst(2)) else { return nil }
        self = .board(id, action)
      }
    }

    struct AllCasePaths: Sendable {
      var board: CasePath<Action, (Int, BoardAction)> {
        CasePath(
          embed: { .board($0.0, $0.1) },
          extract: { if case .board(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      switch action {
      case .open(let id): state.boards[id] = BoardState()
      case .close(let id): state.boards[id] = nil
      case .board: break
      }
      return .none
    }
    .forEach(\.boards, action: \.board) { Board() }
  }
}

private struct PanelFeature: Reducer {
  func reduce(
    into state: inout Panel, action: PanelAction
  ) throws(Rejection) -> Effect<PanelAction> {
    action.apply(to: &state)
    return .none
  }
}

@Suite struct PartsOfOptionalTests {
  @Test func `scope: the parts of a row come and go with it`() async throws {
    try await withDaemon(of: Hall(), state: Hall.State()) { socket, _ in
      let hall = try await MirrorStore<Hall>.connect(.at(socket))
      let board = try await hall.scope(state: \.boards, id: 4, action: \.board)
      let panel = try await board.scope(state: \.panel, action: \.panel)
      let login = try await board.scope(state: \.login, action: \.login)
      let row = try await board.scope(state: \.rows, id: 7, action: \.row)
      #expect(panel.state == nil && login.state == nil && row.state == nil)
      try await hall.send(.open(4))
      await eventually { panel.state == Panel() }
      #expect(login.state == nil && row.state == nil)
      for action in [BoardAction.logIn, .addRow(7)] { try await board.send(action) }
      try await login.send(.set(1))
      try await row.send(.set(2))
      try await panel.send(.set(3))
      await eventually {
        login.state == Panel(value: 1) && row.state == Panel(value: 2)
          && panel.state == Panel(value: 3)
      }
      try await hall.send(.close(4))
      await eventually { panel.state == nil && login.state == nil && row.state == nil }
    }
  }

  @Test func `F4: actions show at once in the parts of a row, and in all that they are parts of`()
    async throws
  {
    try await withDaemon(of: Hall(), state: Hall.State()) { socket, daemon in
      let hall = try await MirrorStore.connect(optimistic: Hall(), .at(socket))
      let board = try await hall.scope(
        state: \.boards, id: 4, action: \.board, optimistic: Board())
      let panel = try await board.scope(
        state: \.panel, action: \.panel, optimistic: PanelFeature())
      let login = try await board.scope(
        state: \.login, action: \.login, optimistic: PanelFeature())
      let row = try await board.scope(
        state: \.rows, id: 7, action: \.row, optimistic: PanelFeature())
      panel.post(.set(1), .optimistic)
      #expect(panel.state == nil)
      try await hall.send(.open(4))
      for action in [BoardAction.logIn, .addRow(7)] { try await board.send(action, .optimistic) }
      await eventually { login.state == Panel() && row.state == Panel() && panel.pending.isEmpty }
      await daemon.stop()
      panel.post(.set(3), .optimistic)
      login.post(.set(4), .optimistic)
      row.post(.set(5), .optimistic)
      hall.post(.board(4, .row(7, .note("hall"))), .optimistic)
      #expect(panel.state == Panel(value: 3) && login.state == Panel(value: 4))
      #expect(row.state == Panel(value: 5, note: "hall") && row.pending.count == 2)
      #expect(board.state?.panel == panel.state && board.state?.rows[7] == row.state)
      #expect(hall.boards[4]?.login == login.state && hall.pending.count == 4)
      #expect(panel.confirmed == Panel() && row.confirmed == Panel())
    }
  }
}
