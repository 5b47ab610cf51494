import Lockstep
import LockstepClient
import Testing
import Values

@Suite struct PausedEffectTests {
  /// What is paused is the reduction of what an effect sends, and the effect with it.
  @Test func `an effect goes on when what it has sent has been reduced, also after a pause`()
    async throws
  {
    let (reduced, heard) = (Recorder<BoardAction>(), Recorder<[BoardAction]>())
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let board = Board { action, _ in
      reduced.append(action)
      guard action == .load(true) else { return .none }
      return .run { send in
        for await _ in gate {}
        for number in 1...2 {
          await send(.add(number))
          heard.append(reduced.all)
        }
      }
    }
    try await withDaemon(board) { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      try await mirror.send(.load(true))
      _ = try await mirror.connection.report("pause")
      opener.finish()
      // Long enough for an effect that does not wait to be found out; one that waits is never.
      for _ in 0..<50 { _ = try await mirror.connection.ping() }
      #expect(heard.all.isEmpty && mirror.state.log == [])
      _ = try await mirror.connection.report("resume")
      await eventually { heard.count == 2 }
      #expect(
        heard.all == [[.load(true), .add(1)], [.load(true), .add(1), .add(2)]])
      await mirror.connection.finish()
    }
  }
}
