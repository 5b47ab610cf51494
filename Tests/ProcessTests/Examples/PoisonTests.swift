import AppShellFeature
import Foundation
import LockstepClient
import Testing
import Wire

/// A client resends an action that ends its daemon twice, and no more.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct PoisonTests {
  @Test func `an action that has ended two daemons is rejected by the third`() async throws {
    try await withHome { home in
      func start() async throws -> RunningDaemon {
        let daemon = try ChildProcess(
          Binaries.example("appshelld"),
          ["--socket", home.socket, "--state-dir", home.state, "--allow-crash"],
          environment: ["SWIFT_BACKTRACE": "enable=no"])
        let line = try await daemon.line(with: " serving ")
        return try #require(RunningDaemon(daemon, line), "\(line)")
      }
      let first = try await start()
      var options = Connection.Options(socket: home.socket, label: "poisoner")
      options.waitsForDaemon = true
      let mirror = try await MirrorStore<AppShell>.connect(options)
      // The session is kept, so the client resends the action under its number.
      let before = try await mirror.send(.tabAction(.select(.profile)), .durable)
      #expect(before.mark == .durable)
      let crash = Task { try await mirror.send(.crash) }
      #expect(isCrash(try await first.process.end()))
      let second = try await start()
      #expect(isCrash(try await second.process.end()))

      let third = try await start()
      defer { third.process.signal(SIGKILL) }
      let error = await #expect(throws: ClientError.self) { try await crash.value }
      #expect(error?.description.contains("ended the daemon's process twice") == true)
      #expect(third.process.output.contains { $0.contains("times=2") }, "\(third.process.output)")
      // Other clients are not affected, and neither are later actions of this client.
      #expect(mirror.state.tabState.selected == .profile)
      let after = try await mirror.send(.tabAction(.select(.search)), .durable)
      #expect(after.mark == .durable)
      try await third.stop()

      // The action stays rejected, and the next daemon starts normally.
      let fourth = try await start()
      try await mirror.send(.tabAction(.select(.profile)), .durable)
      mirror.connection.close()
      try await fourth.stop()
    }
  }

  private func isCrash(_ ending: ChildProcess.Ending) -> Bool {
    ending == .signal(SIGILL) || ending == .signal(SIGTRAP)
  }
}
