import ClientCore
import EventLoop
import SocketPaths
import Synchronization
import Values
import Wire

// The socket and the timers: used on the loop only.
extension Link {
  /// The objects that belong to the loop.
  ///
  /// Unchecked: made on any thread, then used on the loop's thread only.
  final class Socket: @unchecked Sendable {
    var pipe: Pipe?
    var timer: EventLoop.Timer?
    var ticker: EventLoop.Timer?
    /// Fires shortly after each tick, when the bytes received meanwhile have been read.
    var afterTick: EventLoop.Timer?
    var generation: UInt64 = 0

    func close() {
      generation += 1
      timer?.close()
      ticker?.close()
      afterTick?.close()
      timer = nil
      ticker = nil
      afterTick = nil
      pipe?.stopReading()
      pipe?.closeAfterWriting()
      pipe = nil
    }
  }

  func flush() {
    let commands = state.withLock { state in
      state.isFlushScheduled = false
      defer { state.commands = [] }
      return state.commands
    }
    var frames: [[UInt8]] = []
    for command in commands {
      if case .send(let bytes) = command {
        frames.append(bytes)
        continue
      }
      write(&frames)
      switch command {
      case .connect(let delay): connect(after: delay)
      case .disconnect: disconnect()
      case .send, .notify: break
      }
    }
    write(&frames)
  }

  private func write(_ frames: inout [[UInt8]]) {
    guard !frames.isEmpty else { return }
    if let pipe = socket.pipe, case .failed(let error) = pipe.write(frames) { writingFailed(error) }
    frames.removeAll(keepingCapacity: true)
  }

  /// A daemon that has closed accepts no more bytes, but its goodbye is still to be read, and the
  /// end of the stream follows it.
  private func writingFailed(_ error: LoopError) {
    if error.name != "EPIPE" && error.name != "ECONNRESET" { lost() }
  }

  private func connect(after delay: Duration) {
    guard delay > .zero else { return connect() }
    let timer = socket.timer ?? EventLoop.Timer(on: loop) { [weak self] in self?.connect() }
    socket.timer = timer
    timer.start(after: delay)
  }

  private func connect() {
    socket.generation += 1
    let generation = socket.generation
    // A daemon that is waited for may come to listen on another standard place.
    let path = state.withLock { $0.path } ?? SocketPath.standard
    Pipe.connect(path: path, on: loop) { [weak self] result in
      guard let self, socket.generation == generation else {
        if case .success(let pipe) = result { pipe.close() }
        return
      }
      switch result {
      case .success(let pipe): opened(pipe, at: path)
      case .failure(let error): failed(error, at: path)
      }
    }
  }

  private func opened(_ pipe: Pipe, at path: String) {
    socket.pipe = pipe
    pipe.onWriteError = { [weak self, weak pipe] error in
      // A pipe that was already replaced may still fail.
      if let self, let pipe, socket.pipe === pipe { writingFailed(error) }
    }
    pipe.startReading(
      onBytes: { [weak self] bytes in self?.received(bytes) },
      onEnd: { [weak self] _ in self?.lost() })
    perform { state in
      // From now on this daemon is meant, and no other.
      state.path = path
      state.session.connected(at: Self.now(), into: &state.commands)
    }
  }

  private func failed(_ error: LoopError, at path: String) {
    perform { state in
      state.connectError = (path, error)
      if !state.hasBeenLive && !waitsForDaemon {
        state.session.close(into: &state.commands)
      } else {
        state.session.disconnected(at: Self.now(), into: &state.commands)
      }
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    // Unchecked: the bytes are read before this call returns, on this thread.
    nonisolated(unsafe) let bytes = bytes
    perform { $0.session.received(bytes, at: Self.now(), into: &$0.commands) }
  }

  private func lost() {
    guard let pipe = socket.pipe else { return }
    socket.pipe = nil
    pipe.close()
    perform { $0.session.disconnected(at: Self.now(), into: &$0.commands) }
  }

  private func disconnect() {
    socket.generation += 1
    if let pipe = socket.pipe {
      socket.pipe = nil
      pipe.stopReading()
      pipe.closeAfterWriting()
    }
    let hasEnded = perform { state in
      state.session.disconnected(at: Self.now(), into: &state.commands)
      return state.session.hasEnded
    }
    if hasEnded { socket.close() }
  }

  /// A process that was stopped, or got no CPU time, handles a tick before it has read the bytes
  /// that arrived meanwhile. So read first: silence counts as a missed heartbeat of the daemon only
  /// if we have listened.
  func tick() {
    let timer =
      socket.afterTick
      ?? EventLoop.Timer(on: loop) { [weak self] in
        self?.perform { $0.session.tick(at: Self.now(), into: &$0.commands) }
      }
    socket.afterTick = timer
    timer.start(after: .milliseconds(1))
  }
}
