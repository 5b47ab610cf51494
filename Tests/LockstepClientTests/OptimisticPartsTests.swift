import ClientCore
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

/// Changes a panel, and dates its notes, if it is told to.
private struct PanelFeature: Reducer {
  @Dependency(\.date) var date

  func reduce(
    into state: inout Panel, action: PanelAction
  ) throws(Rejection) -> Effect<PanelAction> {
    action.apply(to: &state)
    if state.note == "date" { state.note = "\(date.now.nanoseconds)" }
    return .none
  }
}

/// A board whose panels have a reducer of their own: it refuses values below zero, which they do not, and
/// makes those above ten of them ten.
private struct Panels: Reducer {
  func reduce(
    into state: inout BoardState, action: BoardAction
  ) throws(Rejection) -> Effect<BoardAction> {
    if action == .panel(.set(-1)) || action == .row(7, .set(-1)) {
      throw Rejection(.refused, "below zero")
    }
    _ = try Board().reduce(into: &state, action: action)
    state.panel.value = min(state.panel.value, 10)
    return .none
  }
}

private typealias Mirror = MirrorStore<Panels>

@Suite struct OptimisticPartsTests {
  @Test
  func `F4: an action shows at once in a mirror of the part that it concerns, and of nothing else`()
    async throws
  {
    var state = BoardState()
    state.log = Array(repeating: 7, count: 10_000)
    try await withDaemon(of: Panels(), state: state) { socket, daemon in
      let panel = try await Mirror.connect(
        to: \.panel, action: \.panel, optimistic: PanelFeature(), .at(socket))
      #expect(panel.subscription.counters.bytes < 20)
      for value in 1...5 {
        panel.post(.set(value), .optimistic)
        #expect(panel.value == value)
      }
      try await panel.send(.note("x"), .optimistic)
      #expect(panel.confirmed == Panel(value: 5, note: "x") && panel.pending.isEmpty)
      await daemon.stop()
      panel.post(.set(6), .optimistic)
      #expect(panel.value == 6 && panel.confirmed.value == 5 && panel.pending == [.set(6)])
    }
  }

  @Test func `F4: what the features around a part decide replaces what showed in it`() async throws
  {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let panel = try await Mirror.connect(
        to: \.panel, action: \.panel, optimistic: PanelFeature(), .at(socket))
      let seen = panel.observe(\.value)
      var failed = panel.failedPosts.makeAsyncIterator()
      panel.post(.set(-1), .optimistic)
      #expect(try #require(await failed.next()).action == .set(-1))
      #expect(panel.value == 0 && panel.pending.isEmpty)
      // It is made less in the daemon, and with it the part is as it was the second time.
      for _ in 0..<2 {
        try await panel.send(.set(20), .optimistic)
        #expect(panel.value == 10 && panel.pending.isEmpty)
      }
      panel.connection.close()
      var last: Int?
      for await value in seen { last = value }
      #expect(last == 10)
    }
  }

  @Test func `F4: a row that may be absent shows what it is sent while it is there`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let whole = try await Mirror.connect(.at(socket))
      let row = try await Mirror.connect(
        to: \.rows, id: 7, action: \.row, optimistic: PanelFeature(), .at(socket))
      try await row.send(.set(1), .optimistic)
      #expect(row.state == nil)
      try await whole.send(.addRow(7))
      try await row.send(.note("x"), .optimistic)
      #expect(row.state == Panel(note: "x"))
      await #expect(throws: ClientError.self) { try await row.send(.set(-1), .optimistic) }
      #expect(row.state == Panel(note: "x"))
      try await whole.send(.removeRow(7))
      await eventually { row.state == nil }
      try await whole.send(.addRow(7))
      await eventually { row.state == Panel() }
      await daemon.stop()
      row.post(.set(2), .optimistic)
      #expect(row.state == Panel(value: 2) && row.confirmed == Panel() && row.pending == [.set(2)])
    }
  }

  @Test func `F4: an optional part shows what it is sent while it is there`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let whole = try await Mirror.connect(.at(socket))
      let login = try await Mirror.connect(
        to: \.login, action: \.login, optimistic: PanelFeature(), .at(socket))
      #expect(login.state == nil)
      try await whole.send(.logIn)
      await eventually { login.state != nil }
      await daemon.stop()
      login.post(.set(2), .optimistic)
      #expect(login.state == Panel(value: 2) && login.confirmed == Panel())
    }
  }

  @Test func `F4: a store and its parts show what any of them sends`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let whole = try await Mirror.connect(optimistic: Panels(), .at(socket))
      try await whole.send(.addRow(7))
      let panel = try await whole.scope(
        state: \.panel, action: \.panel, optimistic: PanelFeature())
      let row = try await whole.scope(
        state: \.rows, id: 7, action: \.row, optimistic: PanelFeature())
      let login = try await whole.scope(
        state: \.login, action: \.login, optimistic: PanelFeature())
      let plain = try await whole.scope(state: \.panel, action: \.panel)
      await daemon.stop()
      panel.post(.set(3), .optimistic)
      row.post(.set(4), .optimistic)
      whole.post(.panel(.note("whole")), .optimistic)
      login.post(.set(5), .optimistic)
      #expect(panel.state == Panel(value: 3, note: "whole"))
      #expect(row.state == Panel(value: 4) && login.state == nil)
      #expect(whole.panel == panel.state && whole.rows[7] == row.state)
      #expect(panel.pending == [.set(3), .note("whole")] && row.pending == [.set(4)])
      #expect(whole.pending.count == 4)
      // A part that was made without a reducer shows what is confirmed.
      #expect(plain.state == Panel() && panel.confirmed == Panel())
    }
  }

  @Test func `F4: an action of something else leaves nothing waiting in a part`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, _ in
      let whole = try await Mirror.connect(optimistic: Panels(), .at(socket))
      let panel = try await whole.scope(
        state: \.panel, action: \.panel, optimistic: PanelFeature())
      for count in 1...3 {
        try await whole.send(.increment, .optimistic)
        #expect(whole.count == count && panel.pending.isEmpty && whole.pending.isEmpty)
      }
      try await panel.send(.set(3), .optimistic)
      #expect(panel.confirmed.value == 3 && panel.pending.isEmpty)
    }
  }

  @Test func `F4: a part that is made while actions wait shows them`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, _ in
      let whole = try await Mirror.connect(optimistic: Panels(), .at(socket))
      // Some wait at any time.
      let sending = Task {
        var value = 0
        while !Task.isCancelled {
          value += 1
          whole.post(.panel(.set(value % 10)), .optimistic)
          if value % 20 == 0 { _ = try? await whole.send(.increment, .optimistic) }
        }
      }
      for number in 0..<50 {
        let panel = try await whole.scope(
          state: \.panel, action: \.panel, optimistic: PanelFeature())
        panel.post(.note("\(number)"), .optimistic)
        #expect(panel.note == "\(number)")
      }
      sending.cancel()
      await sending.value
      try await whole.send(.increment)
      #expect(whole.pending.isEmpty)
    }
  }

  @Test func `F4: a part that is made without a daemon shows what it is sent`() async throws {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let whole = try await Mirror.connect(optimistic: Panels(), .at(socket))
      // What is received for the path already is shared.
      let plain = try await whole.scope(state: \.panel, action: \.panel)
      await daemon.stop()
      await eventually { whole.connection.state != .live }
      whole.post(.panel(.set(3)), .optimistic)
      let panel = try await whole.scope(
        state: \.panel, action: \.panel, optimistic: PanelFeature())
      panel.post(.note("x"), .optimistic)
      #expect(panel.note == "x" && panel.pending == [.note("x")])
      #expect(whole.panel == Panel(value: 3, note: "x") && plain.state == Panel())
    }
  }

  @Test func `F4: a part's reducer has the dependencies of the store that it was made of`()
    async throws
  {
    try await withDaemon(of: Panels(), state: BoardState()) { socket, daemon in
      let whole = try await Mirror.connect(optimistic: Panels(), .at(socket)) {
        $0.date = .constant(Timestamp(nanoseconds: 5))
      }
      let scoped = try await whole.scope(
        state: \.panel, action: \.panel, optimistic: PanelFeature())
      let alone = try await Mirror.connect(
        to: \.panel, action: \.panel, optimistic: PanelFeature(), .at(socket)
      ) { $0.date = .constant(Timestamp(nanoseconds: 6)) }
      await daemon.stop()
      for panel in [scoped, alone] { panel.post(.note("date"), .optimistic) }
      #expect(scoped.note == "5" && alone.note == "6")
    }
  }
}
