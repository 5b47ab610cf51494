import Dispatch
import EventLoop
import Lockstep
import LockstepClient
import Testing
import Values

@Suite struct CancellationTests {
  private typealias Wait = (name: String, body: @Sendable () async throws -> Void)

  /// Every way to wait for a daemon.
  private static func waits(
    _ mirror: Subscription<BoardState>, _ absent: Connection
  ) -> [Wait] {
    [
      ("send", { try await mirror.send(BoardAction.increment) }),
      ("reached", { try await mirror.reached(revision: 1_000) }),
      ("ping", { _ = try await mirror.connection.ping() }),
      ("report", { _ = try await mirror.connection.report("status") }),
      ("daemonDigest", { _ = try await mirror.daemonDigest() }),
      ("connected", { try await absent.connected() }),
    ]
  }

  /// Calls a body with the ways to wait for a daemon, and for another that is not there.
  private func withWaits(
    _ body: ([Wait], Subscription<BoardState>, HostedDaemon<Board>) async throws -> Void
  ) async throws {
    try await withDaemon { socket, daemon in
      let mirror = try await Subscription<BoardState>.connect(.init(socket: socket, label: "test"))
      try await mirror.reached(revision: 0)
      var options = Connection.Options(socket: socket + "-absent", label: "test")
      options.waitsForDaemon = true
      let absent = try Connection.open(options)
      try await body(Self.waits(mirror, absent), mirror, daemon)
      absent.close()
      await mirror.connection.finish()
    }
  }

  @Test func `whatever waits ends with its task, and a sent action goes on`() async throws {
    try await withWaits { waits, mirror, daemon in
      let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      daemon.loop.execute {
        begun.signal()
        end.wait()
      }
      await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          begun.wait()
          continuation.resume()
        }
      }
      for wait in waits {
        // In place: it waits as soon as it has begun.
        let task = Task(executorPreference: InPlace()) { try await wait.body() }
        task.cancel()
        await #expect(throws: CancellationError.self, "\(wait.name)") { try await task.value }
      }
      #expect(mirror.connection.unacknowledged == 1 && mirror.state?.count == 0)
      end.signal()
      await eventually { mirror.state?.count == 1 && mirror.connection.unacknowledged == 0 }
      // The late answers have come, and are not taken for this one's.
      _ = try await mirror.connection.ping()
      #expect(try await mirror.daemonDigest().digest == mirror.digest)
    }
  }

  @Test func `a task that is cancelled already asks for nothing`() async throws {
    try await withWaits { waits, mirror, _ in
      for wait in waits {
        let task = Task {
          withUnsafeCurrentTask { $0?.cancel() }
          try await wait.body()
        }
        await #expect(throws: CancellationError.self, "\(wait.name)") { try await task.value }
      }
      try await mirror.send(BoardAction.increment)
      #expect(mirror.state?.count == 1)
    }
  }
}
