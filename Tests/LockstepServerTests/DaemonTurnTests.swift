import CBOR
import DaemonCore
import Documents
import EventLoop
import Foundation
import Lockstep
import Logging
import Testing
import Values
import Wire

@testable import LockstepServer

/// Work that a turn of the loop leaves to the next.
@Suite(.timeLimit(.minutes(1))) struct DaemonTurnTests {
  /// A daemon of a document, on a loop of its own.
  ///
  /// Unchecked: the daemon is touched only on its loop.
  private final class Hosted: @unchecked Sendable {
    let loop: Loop
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

    static let clients = 200
    private var pipes: [EventLoop.Pipe] = []
    private var counts: [Int] = []

    /// Connects clients on the daemon's own loop, and closes all of them between two polls. Returns how many
    /// connections there are after each turn from then on, until there is none.
    func countConnections(_ socket: String, _ done: CheckedContinuation<[Int], Never>) {
      guard let daemon else { return done.resume(returning: []) }
      let endTurn = loop.onTurnEnd
      loop.onTurnEnd = { [self] in
        endTurn?()
        if pipes.count == Self.clients, daemon.server.connectionCount == Self.clients {
          counts.append(daemon.server.connectionCount)
          for pipe in pipes { pipe.close() }
          pipes = []
        } else if let last = counts.last, last > 0 {
          counts.append(daemon.server.connectionCount)
          if counts.last == 0 { done.resume(returning: counts) }
        }
      }
      for _ in 0..<Self.clients {
        EventLoop.Pipe.connect(path: socket, on: loop) { [self] result in
          do { pipes.append(try result.get()) } catch { Issue.record(error) }
        }
      }
    }
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

  /// A client on the loop of its daemon, which asks for more than one turn answers.
  ///
  /// Unchecked: it is touched only on its loop.
  private final class Asking: @unchecked Sendable {
    static let count = 1000
    private let daemon: Hosted
    private let done: CheckedContinuation<[Int], Never>
    private var frames = FrameDecoder(limit: 1 << 20)
    /// How many digests came with each read.
    private var digests: [Int] = []

    init(_ daemon: Hosted, _ done: CheckedContinuation<[Int], Never>) {
      self.daemon = daemon
      self.done = done
    }

    func ask(through pipe: EventLoop.Pipe) {
      pipe.startReading(onBytes: { [self] in read($0, through: pipe) }, onEnd: { _ in })
      var messages: [ClientMessage] = [
        .hello(.init(versions: 1...2, label: "asking")), .subscribe(subscription: 1, [], nil),
      ]
      messages += Array(repeating: .digestRequest(subscription: 1), count: Self.count)
      pipe.write(messages.flatMap { message in Frame.encode { message.encode(into: &$0) } })
    }

    private func read(_ bytes: UnsafeRawBufferPointer, through pipe: EventLoop.Pipe) {
      var count = 0
      do {
        try frames.receiveAll(bytes) { item throws(WireError) in
          var decoder = CBORDecoder(item)
          if try MessageHead(from: &decoder).type == .digest { count += 1 }
        }
      } catch {
        Issue.record(error)
      }
      digests.append(count)
      guard digests.reduce(0, +) >= Self.count else { return }
      pipe.close()
      daemon.stop()
      done.resume(returning: digests)
    }
  }

  @Test func `what is ready comes between two turns of work that was left`() async throws {
    Signals.ignoreBrokenPipe()
    var template = Array("/tmp/lockstep-turn-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let daemon = try await Hosted(folder + "/socket")
    let digests = await withCheckedContinuation { done in
      let asking = Asking(daemon, done)
      daemon.loop.execute {
        EventLoop.Pipe.connect(path: folder + "/socket", on: daemon.loop) { result in
          do { asking.ask(through: try result.get()) } catch { Issue.record(error) }
        }
      }
    }
    #expect(digests.reduce(0, +) == Asking.count)
    // A turn has 2,000 units of work, of which a digest takes 20: the client reads before the next one.
    // A timer may end one more between two polls.
    let many = digests.count { $0 > 101 }
    #expect(2 * many < digests.count, "\(digests)")
  }

  @Test func `connections that end all at once are forgotten some in a turn`() async throws {
    Signals.ignoreBrokenPipe()
    var template = Array("/tmp/lockstep-turn-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let daemon = try await Hosted(folder + "/socket")
    let counts = await withCheckedContinuation { done in
      daemon.loop.execute { daemon.countConnections(folder + "/socket", done) }
    }
    #expect(counts.first == Hosted.clients && counts.last == 0)
    // A job that is done beside the loop may end one more turn between two polls.
    for (before, after) in zip(counts, counts.dropFirst()) { #expect(before - after <= 32) }
    #expect(counts.count { $0 > 0 } >= Hosted.clients / 20)
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

  @Test
  func `a connection that is found to have ended again and again is forgotten once, in order`() {
    var ended = EndedConnections()
    for round in 0..<3 {
      for number in 1...10 as ClosedRange<UInt64> {
        #expect(ended.append(ConnectionID(number)) == (round == 0))
      }
    }
    var taken: [UInt64] = []
    while let next = ended.next() { taken.append(next.rawValue) }
    #expect(taken == Array(1...10) && ended.isEmpty)
  }

  /// A client on the loop of its daemon that changes something, and is gone at once: the daemon is told to
  /// stop in the turn in which it reads both.
  private func stopInTheTurn(_ released: Released, _ folder: String, on loop: Loop) throws {
    try released.serve(in: folder, on: loop)
    let endTurn = loop.onTurnEnd
    loop.onTurnEnd = {
      if let daemon = released.daemon, !daemon.ended.isEmpty, !daemon.isStopping { daemon.stop() }
      endTurn?()
    }
    EventLoop.Pipe.connect(path: folder + "/socket", on: loop) { result in
      do {
        let pipe = try result.get()
        var payload = CBOREncoder()
        DocumentAction.set([], 1).encode(into: &payload)
        let messages: [ClientMessage] = [
          .hello(.init(versions: 1...2, label: "brief")),
          .action(number: 1, .applied, payload: payload.bytes),
        ]
        pipe.write(messages.flatMap { message in Frame.encode { message.encode(into: &$0) } })
        pipe.close()
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test func `what a client sent before it was gone is kept, if the daemon stops in that turn`()
    async throws
  {
    Signals.ignoreBrokenPipe()
    var template = Array("/tmp/lockstep-turn-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var states: [Value] = []
    for isAgain in [false, true] {
      let (loop, released) = (try Loop.startThread(name: "test-daemon"), Released())
      let state = try await withCheckedThrowingContinuation {
        (done: CheckedContinuation<Value, any Error>) in
        loop.execute {
          done.resume(
            with: Result {
              guard isAgain else {
                try stopInTheTurn(released, folder, on: loop)
                return .null
              }
              try released.serve(in: folder, on: loop)
              defer { released.daemon?.stop() }
              return released.daemon?.server.state.root ?? .null
            })
        }
      }
      states.append(state)
      await withCheckedContinuation { done in
        Thread {
          loop.waitUntilEnded()
          done.resume()
        }.start()
      }
    }
    #expect(states == [.null, 1])
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
