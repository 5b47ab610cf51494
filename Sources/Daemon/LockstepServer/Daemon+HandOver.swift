import DaemonCore
import EventLoop
import Glibc
import Lockstep
import Logging
import Systemd
import Wire

// Handing over to the next process, and taking over from the former.
extension Daemon {
  /// Hand over connections and state to the next process of the service, without any client
  /// noticing, and let the loop end. If there is no service manager to hold them, or this is called
  /// twice, it is `stop`.
  public func handOver(retryAfter: UInt64 = 1000) {
    guard let service, service.isPresent, stopDeadline == nil else {
      return stop(retryAfter: retryAfter)
    }
    guard Memory.canAllocate(server.snapshotMemory) else {
      logger.error(
        "nothing is handed over", metadata: ["reason": "there is no memory for the state"])
      return stop(retryAfter: retryAfter)
    }
    logger.notice("handing over", metadata: ["clients": .number(server.connectionCount)])
    service.stopping("handing over")
    closeListeners()
    effects.cancelAll()
    forgetAllEnded()
    endTurn()
    stopDeadline = Self.now() + server.limits.goodbyeDeadline
    whenFlushed { [unowned self] in leave(to: service, retryAfter) }
  }

  private func leave(to service: ServiceManager, _ retryAfter: UInt64) {
    isHandingOver = true
    tell(.handingOver(retryAfter: retryAfter))
    var image = server.handOver
    // From here on nothing is read or written by this process.
    var sockets: [(number: UInt64, descriptor: Int32)] = []
    image.connections = image.connections.compactMap { connection in
      guard let (descriptor, unsent) = pipes[ConnectionID(connection.id)]?.handOver() else {
        return nil
      }
      sockets.append((connection.id, descriptor))
      var connection = connection
      connection.unsent = unsent
      return connection
    }
    do throws(SystemError) {
      let memory = try HandOverMemory.make(image.encodedParts(schema: R.schema))
      defer { Glibc.close(memory) }
      let parked = try ParkedDescriptors.park(sockets)
      defer { Glibc.close(parked) }
      if !service.store(memory, as: ServiceManager.stateName)
        || !service.store(parked, as: ServiceManager.connectionsName)
      {
        logger.error("the service manager keeps nothing for the next process")
      }
    } catch {
      logger.error("nothing is handed over", metadata: ["reason": "\(error)"])
    }
    service.settle()
    for pipe in pipes.values { pipe.close() }
    pipes = [:]
    endIfDone()
  }

  /// Take over the connections of a former process.
  func takeOver() {
    guard let inheritance else { return }
    self.inheritance = nil
    defer { inheritance.forgetMemory() }
    var taken = 0
    tell(
      .scopesReserved(inheritance.image.connections.flatMap { $0.subscriptions.map(\.scope) }))
    for connection in inheritance.image.connections {
      guard let descriptor = inheritance.descriptors[connection.id] else { continue }
      do throws(LoopError) {
        let pipe = try Pipe.adopt(descriptor: descriptor, on: loop)
        takeOver(connection, pipe, isTranslated: inheritance.image.isTranslated)
        taken += 1
      } catch {
        Glibc.close(descriptor)
        logger.warning("a connection is lost", metadata: ["reason": "\(error)"])
      }
    }
    nextConnection = max(
      nextConnection, inheritance.image.connections.map(\.id).max() ?? 0)
    logger.notice("took over", metadata: ["clients": .number(taken)])
  }

  private func takeOver(_ connection: HandedConnection, _ pipe: Pipe, isTranslated: Bool) {
    let id = ConnectionID(connection.id)
    pipes[id] = pipe
    // After the bytes that the former process had not written, and before anything new.
    let outcome = connection.unsent.isEmpty ? .written : pipe.write(connection.unsent)
    // Nothing is read before the loop turns: first it is told what must be read before that.
    listen(to: pipe, id)
    tell(.inherited(connection, isTranslated: isTranslated))
    if server.watchesSessions { watchProcess(of: pipe, id) }
    switch outcome {
    case .written: break
    case .pending(let unsent): tell(.blocked(id, unsent: unsent))
    case .failed(let error): lost(id, error)
    }
  }
}
