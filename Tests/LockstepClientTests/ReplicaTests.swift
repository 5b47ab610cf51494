import Lockstep
import LockstepClient
import Testing
import Values
import Wire

private typealias BoardReplica = Replica<BoardState>

@Suite struct ReplicaTests {
  private func connect(_ socket: String) async throws -> BoardReplica {
    try await BoardReplica.connect(.init(socket: socket, label: "test"))
  }

  @Test func `what is given to changes(of:) may use the mirror in any way`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await connect(socket)
      let reads = Recorder<String>()
      let counts = mirror.changes { [weak mirror] state -> Int? in
        guard let mirror else { return nil }
        // Everything that can be read, and what is sent or asked for without waiting.
        let revision = mirror.position?.revision ?? 0
        _ = (mirror.digest, mirror.counters, mirror.welcome, mirror.schema, mirror.sessionNumber)
        _ = (mirror.divergences, mirror.lastDivergence, mirror.rejectedPosts, mirror.unacknowledged)
        _ = (mirror.connections, mirror.changes, mirror.revisions, mirror.mirror(of: .root))
        let isNew = mirror.snapshot.position.map { $0.revision >= revision } ?? false
        reads.append("\(mirror.connection == .live) \(isNew) \(mirror.state?.count ?? -1)")
        if state?.count == 1 { mirror.post(BoardAction.increment) }
        return state?.count
      }
      var iterator = counts.makeAsyncIterator()
      #expect(await iterator.next() == 0)
      try await mirror.send(BoardAction.increment)
      await eventually { mirror.state?.count == 2 }
      await eventually { reads.all.last == "true true 2" }
      mirror.close()
      var last: Int??
      while let count = await iterator.next() { last = count }
      #expect(last == 2)
      await mirror.finish()
    }
  }

  @Test func `a closure that closes the mirror ends its own sequence`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await connect(socket)
      let counts = mirror.changes { [weak mirror] state -> Int? in
        if state?.count == 3 { mirror?.close() }
        return state?.count
      }
      for _ in 1...3 { mirror.post(BoardAction.increment) }
      var last: Int?
      for await count in counts { last = count }
      #expect(last == 3)
      await #expect(throws: ClientError.self) { try await mirror.send(BoardAction.increment) }
    }
  }

  @Test func `who has sent finds at least what was done in a sequence that began before`()
    async throws
  {
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
      await mirror.finish()
      await other.finish()
    }
  }
}
