import DaemonCore
import EventLoop
import Lockstep
import Logging
import Wire

// The connections of a daemon: how they begin, what is written to them, and how they end.
extension Daemon {
  func accept(_ pipe: Pipe) {
    lastAcceptError = nil
    // One for each that comes, so that a user's new connections are not refused for the sake of those that
    // have ended, unless those of others go before them.
    if let next = ended.next() { forget(next) }
    guard let identity = pipe.peer else {
      // The peer is gone before its credentials could be read.
      return pipe.close()
    }
    nextConnection += 1
    let id = ConnectionID(nextConnection)
    pipes[id] = pipe
    let peer = Peer(
      pid: UInt64(UInt32(bitPattern: identity.pid)), uid: UInt64(identity.uid),
      gid: UInt64(identity.gid), groups: identity.groups.map { UInt64($0) })
    tell(.opened(id, peer, SessionToken(high: random.next(), low: random.next())))
    // What is ready in this turn, too.
    loop.readLength = server.readBytes
    if server.watchesSessions { watchProcess(of: pipe, id) }
    listen(to: pipe, id)
  }

  func listen(to pipe: Pipe, _ id: ConnectionID) {
    // Strong, for the reason that `onTurnEnd` is; the pipe drops it when it is closed.
    pipe.startReading { event in
      switch event {
      case .bytes(let bytes): self.receive(id, bytes)
      case .end(let error): self.lost(id, error)
      case .drained: self.tell(.drained(id))
      case .writeError(let error): self.lost(id, error)
      }
    }
  }

  func watchProcess(of pipe: Pipe, _ id: ConnectionID) {
    do throws(LoopError) {
      processes[id] = try pipe.watchPeer { [unowned self] in
        processes[id] = nil
        tell(.exited(id))
      }
    } catch {
      // The session then ends after its grace period.
      logger.notice(
        "the end of a client's process will not be noticed",
        metadata: ["connection": .number(id.rawValue), "reason": "\(error)"])
    }
  }

  func send(_ frames: Frames, to id: ConnectionID) {
    guard let pipe = pipes[id] else { return }
    let outcome =
      switch frames {
      case .none: WriteOutcome.written
      case .one(let frame): pipe.write(frame)
      case .two(let first, let second): pipe.write(first, second)
      case .many(let frames): pipe.write(frames)
      }
    switch outcome {
    case .written: break
    // Bytes that are handed over wait for no socket.
    case .pending(let unsent): if !isHandingOver { tell(.blocked(id, unsent: unsent)) }
    case .failed(let error): lost(id, error)
    }
  }

  /// Close when everything is written, or at the deadline.
  func part(_ id: ConnectionID) {
    guard let pipe = pipes.removeValue(forKey: id) else { return }
    inspections.remove(id)
    tell(.closed(id))
    guard pipe.unsentBytes > 0 else { return pipe.close() }
    parting[id] = (pipe, Self.now() + server.limits.goodbyeDeadline)
    pipe.onDrained = { [unowned self] in
      parting[id] = nil
      endIfDone()
    }
    pipe.closeAfterWriting()
  }

  func lost(_ id: ConnectionID, _ error: LoopError?) {
    hasNews = true
    guard ended.append(id) else { return }
    if let error {
      logger.debug(
        "connection lost", metadata: ["connection": .number(id.rawValue), "reason": "\(error)"])
    }
  }

  /// Forget some of the connections that have ended, behind a turn: it takes some 15 microseconds for each,
  /// and all those of a process end with it. Another turn follows, after a poll: their sockets are closed
  /// before it, which would end one there.
  @inline(never)
  func forgetEnded() {
    for _ in 0..<16 {
      if let next = ended.next() { forget(next) }
    }
    hasNews = false
    wake()
  }

  /// Forget all of them, as the process ends.
  func forgetAllEnded() { while let next = ended.next() { forget(next) } }

  func forget(_ id: ConnectionID) {
    if let parted = parting.removeValue(forKey: id) {
      parted.pipe.close()
    } else if let pipe = pipes.removeValue(forKey: id) {
      inspections.remove(id)
      pipe.close()
      tell(.closed(id))
    }
    endIfDone()
  }
}
