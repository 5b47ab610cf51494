import Access
import ClientCore
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

@Suite struct MirrorStoreTests {
  @Test("RED-11 EFF-04: when send returns, the mirror shows the change of the action")
  func readsItsOwnWrites() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      for count in 1...50 {
        let acknowledgement = try await mirror.send(.increment)
        #expect(mirror.count == count && acknowledgement.outcome == .reduced)
      }
      #expect(mirror.subscription.position?.revision == 50 && mirror.state.count == 50)
      mirror.post(.load(true))
      try await mirror.send(.load(true))
      #expect(mirror.isLoading)
      await #expect(throws: ClientError.self) { try await mirror.send(.refuse) }
      let other = try await BoardMirror.connect(.at(socket))
      #expect(other.subscription.digest == mirror.subscription.digest && other.count == 50)
      await mirror.connection.finish()
    }
  }

  @Test("RED-05 RDX-17 TCA-07: an observer of a property is not called for other properties")
  func observation() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let (counts, loads, reads) = (Recorder<Int>(), Recorder<Bool>(), Recorder<Int>())
      record(counts) { [weak mirror] in mirror?.count }
      record(loads) { [weak mirror] in mirror?.isLoading }
      record(reads) { [weak mirror] in mirror?.state.count }
      try await mirror.send(.load(true))
      await eventually { loads.all == [false, true] }
      #expect(counts.all == [0])
      try await mirror.send(.increment)
      await eventually { counts.all == [0, 1] }
      #expect(loads.all == [false, true] && reads.all == [0])
    }
  }

  @Test("RKT-16: observers run in the isolation that connected")
  @MainActor func isolation() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let counts = Recorder<Int>()
      record(counts) { [weak mirror] in
        // Traps on another executor.
        MainActor.assumeIsolated { mirror?.count }
      }
      try await mirror.send(.increment)
      await eventually { counts.all == [0, 1] }
      let panel = try await mirror.scope(state: \.panel, action: \.panel)
      let values = Recorder<Int>()
      record(values) { [weak panel] in MainActor.assumeIsolated { panel?.value } }
      try await panel.send(.set(4))
      await eventually { values.all == [0, 4] }
    }
  }

  @Test("RKT-15 RKT-16 RED-05: a sequence of a property ends with the connection")
  func observe() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      var loads = mirror.observe(\.isLoading).makeAsyncIterator()
      var facts = mirror.observe(\.fact).makeAsyncIterator()
      // The first element is the current value.
      #expect(await loads.next() == false)
      #expect(await facts.next() == .some(nil))
      try await mirror.send(.increment)
      try await mirror.send(.load(true))
      #expect(await loads.next() == true)
      try await mirror.send(.fact("a"))
      #expect(await facts.next() == "a")
      mirror.connection.close()
      #expect(await loads.next() == nil)
      #expect(await facts.next() == nil)
    }
  }

  @Test("2.2-Pulse: each assignment is a pulse, also of an equal value, and nothing else is")
  func pulses() async throws {
    var state = BoardState()
    state.alerts.wrappedValue = "0"
    try await withDaemon(state: state) { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let alerts = mirror.pulses(\.alerts)
      for text in ["1", "2", "3", "3"] {
        mirror.post(.alert(text))
        mirror.post(.increment)
      }
      try await mirror.send(.alert("end"))
      mirror.connection.close()
      var seen: [String?] = []
      for await alert in alerts { seen.append(alert) }
      #expect(seen == ["1", "2", "3", "3", "end"])
    }
  }

  @Test("2.2-Pulse: a reconnection alone is no pulse, and an assignment before it is one")
  func pulsesAfterReconnection() async throws {
    try await withDaemon { socket, daemon in
      let mirror = try await BoardMirror.connect(.at(socket))
      var alerts = mirror.pulses(\.alerts).makeAsyncIterator()
      try await mirror.send(.alert("a"))
      #expect(await alerts.next() == "a")
      var same = mirror.state
      await daemon.stop()
      same.count = 77
      let second = try await HostedDaemon(socket, state: same)
      await eventually { mirror.count == 77 }
      await second.stop()
      same.count = 78
      same.alerts.wrappedValue = "b"
      same.alerts.wrappedValue = "b"
      let third = try await HostedDaemon(socket, state: same)
      #expect(await alerts.next() == "b")
      try await mirror.send(.alert("c"))
      #expect(await alerts.next() == "c")
      await third.stop()
    }
  }

  @Test("RDX-17: a value read after a notification is at least as new as the notification")
  func newestIsRead() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let counts = Recorder<Int>()
      record(counts) { [weak mirror] in mirror?.count }
      for _ in 0..<500 { mirror.post(.increment) }
      await eventually { counts.all.last == 500 }
      #expect(counts.all.sorted() == counts.all && counts.all.first == 0)
    }
  }

  @Test("2.1-StoreLifetime: a store is freed while changes arrive")
  func lettingGo() async throws {
    try await withDaemon { socket, _ in
      let writer = try await BoardMirror.connect(.at(socket))
      for round in 1...30 {
        let (seen, view) = (Recorder<Int>(), View())
        var mirror: BoardMirror? = try await BoardMirror.connect(.at(socket))
        weak let gone = mirror
        var counts = mirror?.observe(\.count).makeAsyncIterator()
        record(seen) { [weak mirror] in mirror?.count }
        mirror?.bind(to: view) { [weak view] mirror, bindings in
          bindings.observe(\.count) { [weak view] in view?.counts.append($0) }
        }
        for _ in 0..<50 { writer.post(.increment) }
        mirror = nil
        while await counts?.next() != nil {}
        try await writer.send(.increment)
        await eventually { gone == nil }
        #expect(writer.count == round * 51)
      }
    }
  }

  @Test("RKT-13: the sequence of changes has every revision")
  func changes() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let changes = mirror.changes
      for _ in 0..<20 { mirror.post(.increment) }
      try await mirror.send(.load(true))
      mirror.connection.close()
      var seen: [Int] = []
      for await state in changes { seen.append(state.count) }
      #expect(seen == Array(0...20) + [20])
    }
  }

  // MARK: Scopes

  @Test("TCA-12: a scoped store receives its part alone, and sends the part's actions")
  func scope() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let panel = try await mirror.scope(state: \.panel, action: \.panel)
      let before = panel.subscription.counters
      for _ in 0..<100 { try await mirror.send(.increment) }
      #expect(panel.subscription.counters == before)
      try await panel.send(.set(5))
      #expect(panel.value == 5 && panel.state == Panel(value: 5))
      #expect(panel.subscription.counters.patches == before.patches + 1)
      await eventually { mirror.panel.value == 5 }
      let position = try #require(mirror.subscription.position)
      try await mirror.send(.panel(.note("n")))
      await eventually { panel.note == "n" }
      #expect(panel.subscription.path == [4] && position.revision >= 101)
    }
  }

  @Test func `TCA-12: a store of a part alone receives nothing else, not even at its start`()
    async throws
  {
    var state = BoardState()
    state.log = Array(repeating: 7, count: 10_000)
    try await withDaemon(state: state) { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let panel = try await BoardMirror.connect(
        to: \.panel, action: \.panel, .at(socket))
      #expect(panel.subscription.counters.bytes < 20)
      try await panel.send(.set(5))
      #expect(panel.value == 5)
      let row = try await BoardMirror.connect(to: \.rows, id: 7, action: \.row, .at(socket))
      #expect(row.state == nil)
      try await mirror.send(.addRow(7))
      try await row.send(.note("x"))
      #expect(row.state == Panel(note: "x") && row.subscription.path == [6, 7])
      #expect(row.subscription.counters.bytes < 40)
      for store in [panel.connection, row.connection] { await store.finish() }
    }
  }

  @Test("TCA-12: optional parts and entries appear and disappear")
  func optionalParts() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let login = try await mirror.scope(state: \.login, action: \.login)
      let row = try await mirror.scope(state: \.rows, id: 7, action: \.row)
      #expect(login.state == nil && row.state == nil)
      let values = Recorder<Int?>()
      record(values) { [weak login] in login.map { $0.value } }
      try await mirror.send(.logIn)
      await eventually { login.state == Panel() }
      try await login.send(.set(3))
      #expect(login.state?.value == 3)
      await eventually { values.all.last == 3 }
      try await mirror.send(.addRow(8))
      #expect(row.state == nil)
      try await mirror.send(.addRow(7))
      try await row.send(.note("x"))
      #expect(row.state == Panel(note: "x"))
      try await mirror.send(.removeRow(7))
      try await mirror.send(.logOut)
      await eventually { row.state == nil && login.state == nil }
      await eventually { values.all.last == .some(nil) }
    }
  }

  @Test("TCA-12: stores of one part share it, and a part lives as long as one of them")
  func sharedParts() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let first = try await mirror.scope(state: \.panel, action: \.panel)
      do {
        let second = try await mirror.scope(state: \.panel, action: \.panel)
        try await first.send(.set(1))
        #expect(second.value == 1)
      }
      try await first.send(.set(2))
      #expect(first.value == 2)
    }
  }

  @Test("TCA-12: a part keeps the connection when the store of the whole is freed")
  func partAlone() async throws {
    try await withDaemon { socket, _ in
      var mirror: BoardMirror? = try await BoardMirror.connect(.at(socket))
      let panel = try await mirror?.scope(state: \.panel, action: \.panel)
      mirror = nil
      try await panel?.send(.set(5))
      #expect(panel?.value == 5)
    }
  }

  // MARK: Binding

  private final class View: Sendable {
    let counts = Recorder<Int>()
    let binds = Recorder<Int>()
  }

  @Test("RKT-03 RKT-04 RKT-05 RKT-14: bind runs at once and after every reconnection")
  func bind() async throws {
    try await withDaemon { socket, daemon in
      let mirror = try await BoardMirror.connect(.at(socket))
      let view = View()
      let (taps, tap) = AsyncStream<BoardAction>.makeStream()
      mirror.bind(to: view) { [weak view] mirror, bindings in
        view?.binds.append(mirror.state.count)
        bindings.observe(\.count) { [weak view] in view?.counts.append($0) }
        bindings.send(taps)
      }
      await eventually { view.counts.all == [0] }
      tap.yield(.increment)
      await eventually { view.counts.all == [0, 1] }
      await daemon.stop()
      var state = BoardState()
      state.count = 40
      let second = try await HostedDaemon(socket, state: state)
      await eventually { view.binds.all == [0, 40] && view.counts.all.last == 40 }
      try await mirror.send(.increment)
      // Only once, because the former bindings have ended.
      await eventually { view.counts.all.last == 41 }
      #expect(view.counts.all.filter { $0 == 41 }.count == 1)
      await second.stop()
    }
  }

  @Test("RKT-18: bindings end with their owner and with the store")
  func disposal() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let (seen, ended) = (Recorder<Int>(), Recorder<String>())
      let other = View()
      var views = [View()]
      mirror.bind(to: views[0]) { _, bindings in
        bindings.observe(\.count) { seen.append($0) }
        bindings.add(self.waiting { ended.append("gone") })
      }
      mirror.bind(to: other) { _, bindings in bindings.add(self.waiting { ended.append("stays") }) }
      await eventually { seen.all == [0] }
      views = []
      try await mirror.send(.increment)
      await eventually { ended.all == ["gone"] }
      #expect(seen.all == [0])
      mirror.connection.close()
      await eventually { ended.all == ["gone", "stays"] }
      mirror.bind(to: other) { _, _ in seen.append(-1) }
      #expect(seen.all == [0])
    }
  }

  /// A task that waits until it is cancelled.
  private func waiting(_ end: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task {
      try? await Task.sleep(for: .seconds(600))
      end()
    }
  }

  @Test("RKT-04: a view on the main actor is bound there")
  @MainActor func bindOnMainActor() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let label = Label()
      mirror.bind(to: label) { [weak label] _, bindings in
        label?.text = "bound"
        bindings.observe(\.count) { [weak label] in label?.text = "\($0)" }
      }
      try await mirror.send(.increment)
      await eventually { label.text == "1" }
    }
  }

  @MainActor private final class Label {
    var text = ""
  }

  @Test("RKT-17: the state of a store is a snapshot that does not change")
  func snapshots() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      try await mirror.send(.addRow(1))
      let before = mirror.state
      for id in 2...100 { try await mirror.send(.addRow(id)) }
      #expect(before.rows.count == 1 && mirror.rows.count == 100)
    }
  }

  @Test("a store without a daemon reports the error")
  func absentDaemon() async throws {
    try await withDaemon { socket, _ in
      await #expect(throws: ClientError.self) {
        _ = try await BoardMirror.connect(.at(socket + "-none"))
      }
    }
  }
}
