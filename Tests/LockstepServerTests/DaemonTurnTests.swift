import Documents
import EventLoop
import Foundation
import Lockstep
import Logging
import Testing

@testable import LockstepServer

/// Work that a turn of the loop leaves to the next.
@Suite(.timeLimit(.minutes(1))) struct DaemonTurnTests {
  /// A daemon of a document, on a loop of its own.
  ///
  /// Unchecked: the daemon is touched only on its loop.
  private final class Hosted: @unchecked Sendable {
    private let loop: Loop
    private var daemon: Daemon<DocumentFeature>?

    init(_ socket: String) async throws {
      let loop = try Loop.startThread(name: "test-daemon")
      self.loop = loop
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        loop.execute { [self] in
          continuation.resume(with: Result { try serve(at: socket) })
        }
      }
    }

    private func serve(at socket: String) throws {
      var logger = Logger(label: "test")
      logger.logLevel = .critical
      let daemon = Daemon(initialState: Document(), logger: logger, on: loop) { DocumentFeature() }
      try daemon.serve(at: socket, mode: 0o600)
      self.daemon = daemon
    }

    func stop() { loop.execute { [self] in daemon?.stop() } }
  }

  @Test func `an answer that is known at once does not wait for the next tick`() async throws {
    var template = Array("/tmp/lockstep-turn-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let daemon = try await Hosted(folder + "/socket")
    let times = try (0..<6).map { _ in
      try ContinuousClock().measure {
        let request = try ReloadRequest(socket: folder + "/socket")
        let error = #expect(throws: DaemonError.self) { _ = try request.perform() }
        #expect(error?.description.contains("there is no policy file") == true)
      }
    }
    // Waiting for a tick would take one second each; a busy machine may delay one.
    #expect(times.count { $0 >= .milliseconds(500) } <= 1, "\(times)")
    daemon.stop()
  }

  /// A daemon to which its loop has the only reference, that keeps what it holds.
  ///
  /// Unchecked: the daemon is touched only on its loop.
  private final class Released: @unchecked Sendable {
    weak var daemon: Daemon<DocumentFeature>?

    func serve(in folder: String, on loop: Loop) throws {
      var logger = Logger(label: "test")
      logger.logLevel = .critical
      let daemon = try Daemon(
        initialState: Document(), persistence: PersistenceOptions(directory: folder),
        logger: logger,
        on: loop
      ) { DocumentFeature() }
      try daemon.serve(at: folder + "/socket", mode: 0o600)
      self.daemon = daemon
    }
  }

  @Test func `its loop holds a daemon until both have stopped`() async throws {
    var template = Array("/tmp/lockstep-turn-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (loop, released) = (try Loop.startThread(name: "test-daemon"), Released())
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      loop.execute { done.resume(with: Result { try released.serve(in: folder, on: loop) }) }
    }
    await withCheckedContinuation { done in
      loop.execute {
        #expect(released.daemon != nil)
        released.daemon?.stop()
      }
      Thread {
        loop.waitUntilEnded()
        done.resume()
      }.start()
    }
    #expect(released.daemon == nil)
  }
}
