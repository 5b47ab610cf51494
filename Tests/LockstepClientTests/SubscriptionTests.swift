import Lockstep
import LockstepClient
import Testing
import Values
import Wire

private typealias BoardSubscription = Subscription<BoardState>

@Suite struct SubscriptionTests {
  private func connect(_ socket: String) async throws -> BoardSubscription {
    try await BoardSubscription.connect(.init(socket: socket, label: "test"))
  }

  @Test func `a closure that closes the connection ends its own sequence`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await connect(socket)
      let counts = mirror.changes { [weak mirror] state -> Int? in
        if state?.count == 3 { mirror?.connection.close() }
        return state?.count
      }
      for _ in 1...3 { mirror.post(BoardAction.increment) }
      var last: Int?
      for await count in counts { last = count }
      #expect(last == 3)
      await #expect(throws: ClientError.self) { try await mirror.send(BoardAction.increment) }
    }
  }

  @Test func `after a send, a sequence begun before has at least its result`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await connect(socket)
      let other = try await connect(socket)
      let noise = Task { while !Task.isCancelled { try await other.send(BoardAction.load(true)) } }
      for count in 1...200 {
        var counts = mirror.changes { $0?.count }.makeAsyncIterator()
        try await mirror.send(BoardAction.increment)
        #expect(await counts.next() == count)
      }
      noise.cancel()
      _ = await noise.result
      await mirror.connection.finish()
      await other.connection.finish()
    }
  }

  @Test func `mirrors of one connection share it until the last of them is freed`() async throws {
    try await withDaemon { socket, _ in
      let witness = try await Connection.connect(.init(socket: socket, label: "witness"))
      func connections() async throws -> Int? {
        guard case .array(let clients) = try await witness.report("clients") else { return nil }
        return clients.count
      }
      var connection: Connection? = try await .connect(.init(socket: socket, label: "test"))
      var whole: BoardSubscription? = connection?.subscribe()
      var second: BoardSubscription? = connection?.subscribe()
      var panel: Subscription<Panel>? = connection?.subscribe(to: [4])
      #expect(connection?.state == .live && whole?.connection === panel?.connection)
      connection = nil
      try await whole?.reached(revision: 0)
      try await panel?.reached(revision: 0)
      whole = nil
      // Ending one of two mirrors of a path does not affect the other.
      try await second?.send(BoardAction.increment)
      #expect(second?.state?.count == 1 && panel?.state == Panel())
      second = nil
      #expect(try await connections() == 2)
      withExtendedLifetime(panel) {}
      panel = nil
      try await eventually { try await connections() == 1 }
    }
  }

  @Test func `a connection without a mirror sends, and reports its state`() async throws {
    try await withDaemon { socket, daemon in
      var connection: Connection? = try await .connect(.init(socket: socket, label: "test"))
      let states = try #require(connection?.states)
      #expect(connection?.sessionNumber != nil && connection?.state == .live)
      try await connection?.send(BoardAction.increment)
      #expect(try await connection?.send(BoardAction.increment).revision == 2)
      #expect(connection?.unacknowledged == 0 && connection?.rejections == 0)
      // The last reference is gone: the connection says goodbye.
      connection = nil
      var seen: [ConnectionState] = []
      for await state in states { seen.append(state) }
      #expect(seen.first == .live)
      guard case .closed? = seen.last else {
        Issue.record("\(seen)")
        return
      }
      withExtendedLifetime(daemon) {}
    }
  }

  @Test func `a subscription on a closed connection fails`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await connect(socket)
      await mirror.connection.finish()
      let late: BoardSubscription = mirror.connection.subscribe()
      let part: Subscription<Panel> = mirror.connection.subscribe(to: [4])
      await #expect(throws: ClientError.self) { try await part.reached(revision: 0) }
      await #expect(throws: ClientError.self) { try await late.reached(revision: 0) }
      await #expect(throws: ClientError.self) { try await mirror.connection.ping() }
      for await _ in late.statuses {}
      for await _ in part.changes {}
    }
  }
}
