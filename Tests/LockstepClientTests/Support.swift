import EventLoop
import Foundation
import Lockstep
import LockstepClient
import LockstepServer
import LockstepStore
import Logging
import Observation
import Synchronization
import Testing

/// Records events in order.
final class Recorder<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])

  func append(_ element: Element) { elements.withLock { $0.append(element) } }

  var all: [Element] { elements.withLock { $0 } }
  var count: Int { all.count }

}

extension Recorder<String> {
  /// A handler that records warnings.
  var warnings: StoreWarnings { StoreWarnings { self.append($0) } }
}

/// Wait until a condition holds: at most 10,000 times 2 ms, in each of which the threads that run effects
/// have had a turn. By the clock alone other tests that compute would use that up.
func eventually(
  isolation: isolated (any Actor)? = #isolation,
  sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async rethrows {
  for _ in 0..<10_000 {
    if try await condition() { return }
    try? await LoopClock().sleep(for: .milliseconds(2))
    await Task.detached {}.value
  }
  Issue.record("what was waited for did not happen", sourceLocation: sourceLocation)
}

/// Records the value of `read` now and after every change of the properties it reads, until it
/// returns nil because the object is gone.
func record<T: Sendable>(
  _ recorder: Recorder<T>, _ read: @escaping @Sendable () -> T?
) {
  let value = withObservationTracking(read) { record(recorder, read) }
  if let value { recorder.append(value) }
}

/// A daemon in this process, on a loop of its own.
///
/// Unchecked: the daemon is touched only on its loop.
final class HostedDaemon<R: Reducer>: @unchecked Sendable {
  let loop: Loop
  private var daemon: Daemon<R>?

  init(
    _ socket: String, reducer: R, state: R.State,
    middleware: [any Middleware<R.State, R.Action>] = []
  ) async throws {
    let loop = try Loop.startThread(name: "test-daemon")
    self.loop = loop
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      loop.execute { [self] in
        do {
          var logger = Logger(label: "test")
          logger.logLevel = .critical
          let daemon = Daemon(
            initialState: state, middleware: middleware, logger: logger, on: loop
          ) { reducer }
          try daemon.serve(at: socket, mode: 0o600)
          self.daemon = daemon
          continuation.resume()
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }

  /// Stops the daemon, and returns when the socket is free.
  func stop() async {
    loop.execute { [self] in daemon?.stop(retryAfter: 1) }
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        self.loop.waitUntilEnded()
        continuation.resume()
      }
    }
  }
}

extension HostedDaemon<Board> {
  convenience init(_ socket: String, state: BoardState = BoardState()) async throws {
    try await self.init(socket, reducer: Board(), state: state)
  }
}

/// Runs a daemon of a board for one test, and passes its socket to `body`.
@discardableResult
func withDaemon<R>(
  _ board: Board = Board(), state: BoardState = BoardState(),
  isolation: isolated (any Actor)? = #isolation,
  _ body: (String, HostedDaemon<Board>) async throws -> R
) async throws -> R {
  try await withDaemon(of: board, state: state, body)
}

/// Runs a daemon for one test, and passes its socket to `body`.
@discardableResult
func withDaemon<Feature: Reducer, R>(
  of feature: Feature, state: Feature.State,
  middleware: [any Middleware<Feature.State, Feature.Action>] = [],
  isolation: isolated (any Actor)? = #isolation,
  _ body: (String, HostedDaemon<Feature>) async throws -> R
) async throws -> R {
  var template = Array("/tmp/lockstep-client-XXXXXX".utf8CString)
  let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { try? FileManager.default.removeItem(atPath: folder) }
  let socket = folder + "/socket"
  let daemon = try await HostedDaemon(
    socket, reducer: feature, state: state, middleware: middleware)
  do {
    let result = try await body(socket, daemon)
    await daemon.stop()
    return result
  } catch {
    await daemon.stop()
    throw error
  }
}

typealias BoardMirror = MirrorStore<Board>

extension Connection.Options {
  static func at(_ socket: String) -> Connection.Options {
    Connection.Options(socket: socket, label: "test")
  }
}

/// Runs jobs where they are enqueued, so that resuming a task runs its code at once.
final class InPlace: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
  }
}
