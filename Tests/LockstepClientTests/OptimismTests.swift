import Lockstep
import LockstepClient
import LockstepStore
import Testing
import Values
import Wire

/// Decides about the actions of a board by a dependency: so a client and the daemon may differ.
private struct Judge: Reducer {
  /// Whether to reject an action that loads.
  var isStrict = false
  @Dependency(\.date) var date
  @Dependency(\.cause) var cause

  func reduce(
    into state: inout BoardState, action: BoardAction
  ) throws(Rejection) -> Effect<BoardAction> {
    switch action {
    case .increment: state.count += 1
    case .load(let isLoading):
      if isStrict { throw Rejection(.refused, "the daemon is strict") }
      state.isLoading = isLoading
    case .fact: state.fact = "\(date.now.nanoseconds == 0 ? "never" : "now")"
    case .alert: state.fact = cause?.client.map { "session \($0.session) of \($0.uid)" }
    case .burst: return .send(.increment)
    case .addRow(let id): state.rows[id] = Panel()
    default: break
    }
    return .none
  }
}

/// Takes the actions that load.
private struct Taker: Middleware {
  let name = "taker"

  func before(
    _ action: inout BoardAction, state: BoardState, context: inout MiddlewareContext<BoardAction>
  ) -> MiddlewareVerdict {
    if case .load = action { .swallow } else { .proceed }
  }
}

private typealias JudgedMirror = MirrorStore<Judge>

@Suite struct OptimismTests {
  @Test func `F4: an optimistic action shows when post returns, and is confirmed later`()
    async throws
  {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      for count in 1...100 {
        mirror.post(.increment, .optimistic)
        #expect(mirror.count == count && mirror.state.count == count)
      }
      try await mirror.send(.increment)
      #expect(mirror.confirmed.count == 101 && mirror.count == 101 && mirror.pending.isEmpty)
      await daemon.stop()
      // Nobody can answer.
      mirror.post(.increment, .optimistic)
      mirror.post(.addRow(7), .optimistic)
      #expect(mirror.count == 102 && mirror.confirmed.count == 101)
      #expect(mirror.rows[7] == Panel() && mirror.confirmed.rows.isEmpty)
      #expect(mirror.pending == [.increment, .addRow(7)])
    }
  }

  @Test func `F4: where the daemon rejects, what showed disappears, and the sender is told`()
    async throws
  {
    try await withDaemon(of: Judge(isStrict: true), state: BoardState()) { socket, _ in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      let loads = mirror.observe(\.isLoading)
      mirror.post(.load(true), .optimistic)
      await #expect(throws: ClientError.self) { try await mirror.send(.load(true), .optimistic) }
      #expect(mirror.isLoading == false && mirror.pending.isEmpty)
      #expect(mirror.connection.rejections == 2)
      mirror.connection.close()
      // A slow reader may skip what showed for a moment.
      var last: Bool?
      for await isLoading in loads { last = isLoading }
      #expect(last == false)
    }
  }

  @Test func `F4: a post that is not done is told, with its action and the reason`() async throws {
    try await withDaemon(of: Judge(isStrict: true), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      var failed = mirror.failedPosts.makeAsyncIterator()
      let panel = try await mirror.scope(state: \.rows, id: 7, action: \.row)
      var failedInRow = panel.failedPosts.makeAsyncIterator()
      mirror.post(.load(true), .optimistic)
      mirror.post(.increment, .optimistic)
      // Its sender is told, and those that follow posts are not.
      await #expect(throws: ClientError.self) { try await mirror.send(.load(false), .optimistic) }
      mirror.post(.load(false))
      let first = try #require(await failed.next())
      #expect(first.action == .load(true))
      guard case .rejected(let rejection) = first.error else {
        Issue.record("\(first.error)")
        return
      }
      #expect(rejection.message == "the daemon is strict")
      #expect(try #require(await failed.next()).action == .load(false))
      #expect(mirror.isLoading == false && mirror.count == 1)
      // What can never be sent any more.
      await daemon.stop()
      await eventually { mirror.connection.state != .live }
      mirror.post(.increment, .optimistic)
      mirror.post(.row(3, .set(1)))
      panel.post(.set(2))
      mirror.connection.close()
      #expect(try #require(await failed.next()).action == .increment)
      #expect(try #require(await failed.next()).action == .row(3, .set(1)))
      let last = try #require(await failed.next())
      #expect(last.action == .row(7, .set(2)))
      guard case .closed = last.error else {
        Issue.record("\(last.error)")
        return
      }
      // The store of a row is told of that row's actions alone.
      #expect(try #require(await failedInRow.next()).action == .set(2))
      #expect(await failed.next() == nil)
      #expect(await failedInRow.next() == nil)
    }
  }

  @Test func `F4: a post that a middleware takes is told, and what showed disappears`() async throws
  {
    try await withDaemon(
      of: Judge(), state: BoardState(), middleware: [Taker()]
    ) { socket, _ in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      var failed = mirror.failedPosts.makeAsyncIterator()
      mirror.post(.load(true), .optimistic)
      // To its sender it is an answer.
      let answer = try await mirror.send(.load(true), .optimistic)
      #expect(answer.outcome == .swallowed)
      #expect(mirror.isLoading == false && mirror.pending.isEmpty)
      mirror.post(.load(false))
      for isLoading in [true, false] {
        let post = try #require(await failed.next())
        #expect(post.action == .load(isLoading))
        guard case .swallowed = post.error else {
          Issue.record("\(post.error)")
          return
        }
      }
    }
  }

  @Test func `F4: where the daemon decides otherwise, its state replaces what showed`() async throws
  {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket)) {
        $0.date = .constant(Timestamp(nanoseconds: 0))
      }
      try await mirror.send(.fact(""), .optimistic)
      #expect(mirror.fact == "now")
      try await mirror.send(.burst(1), .optimistic)
      await eventually { mirror.count == 1 }
      await daemon.stop()
      mirror.post(.fact(""), .optimistic)
      mirror.post(.burst(1), .optimistic)
      // The effect of a burst runs in the daemon only.
      #expect(mirror.fact == "never" && mirror.count == 1 && mirror.confirmed.fact == "now")
    }
  }

  @Test func `F4: a reducer knows the sender here as it does in the daemon`() async throws {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      try await mirror.send(.alert(""))
      let confirmed = try #require(mirror.fact)
      try await mirror.send(.fact(""))
      await daemon.stop()
      mirror.post(.alert(""), .optimistic)
      #expect(mirror.fact == confirmed)
    }
  }

  @Test func `F4: an observer sees what shows, and then what is confirmed`() async throws {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      await daemon.stop()
      var counts = mirror.observe(\.count).makeAsyncIterator()
      let reads = Recorder<Int>()
      record(reads) { [weak mirror] in mirror?.count }
      #expect(await counts.next() == 0)
      mirror.post(.increment, .optimistic)
      #expect(await counts.next() == 1)
      await eventually { reads.all == [0, 1] }
    }
  }

  @Test func `F4: an action that was never sent is done when a daemon is there again`() async throws
  {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, daemon in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      await daemon.stop()
      // Before the client knows of the end, it would send the action, whose outcome cannot be known.
      await eventually { mirror.connection.state != .live }
      mirror.post(.increment, .optimistic)
      #expect(mirror.count == 1 && mirror.confirmed.count == 0)
      let next = try await HostedDaemon(socket, reducer: Judge(), state: BoardState())
      try await mirror.send(.increment, .optimistic)
      #expect(mirror.count == 2 && mirror.confirmed.count == 2 && mirror.pending.isEmpty)
      await next.stop()
    }
  }

  @Test func `F4: what shows of a counter that only grows never goes back`() async throws {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, _ in
      let writers = try await [
        JudgedMirror.connect(optimistic: Judge(), .at(socket)),
        JudgedMirror.connect(optimistic: Judge(), .at(socket)),
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for mirror in writers {
          group.addTask {
            var last = 0
            for step in 1...400 {
              mirror.post(.increment, .optimistic)
              for _ in 0..<20 {
                let count = mirror.count
                #expect(count >= last, "after \(step) of its own")
                last = max(last, count)
              }
            }
            try await mirror.send(.increment, .optimistic)
          }
        }
        try await group.waitForAll()
      }
      for mirror in writers {
        try await mirror.send(.addRow(0))
        #expect(mirror.count == 802 && mirror.pending.isEmpty)
      }
    }
  }

  @Test func `F4: threads that read and send at once see every action of their own`() async throws {
    try await withDaemon(of: Judge(), state: BoardState()) { socket, _ in
      let mirror = try await JudgedMirror.connect(optimistic: Judge(), .at(socket))
      await withTaskGroup(of: Void.self) { group in
        for thread in 0..<4 {
          group.addTask {
            for step in 0..<100 {
              let id = thread * 1000 + step
              mirror.post(.addRow(id), .optimistic)
              #expect(mirror.state.rows[id] != nil)
            }
          }
        }
      }
      try await mirror.send(.increment)
      #expect(mirror.rows.count == 400 && mirror.confirmed.rows.count == 400)
    }
  }
}
