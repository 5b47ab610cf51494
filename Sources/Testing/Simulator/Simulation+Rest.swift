import ClientCore
import DaemonCore
import Lockstep
import Values
import Wire

extension Simulation {
  /// End the faults, and let everything come to rest.
  mutating func rest() throws(SimulationFailure) {
    isKind = true
    for place in links.indices { links[place].stalledUntil = now }
    try settle(excluding: nil)
  }

  /// Let everything come to rest for a moment.
  mutating func pause() throws(SimulationFailure) {
    try rest()
    isKind = false
  }

  /// Check that all other clients come to rest while one client reads nothing at all.
  mutating func trial(_ slot: Int) throws(SimulationFailure) {
    guard !clients[slot].isGhost, let id = clients[slot].link, let stalled = place(of: id) else {
      return
    }
    count("trials")
    for place in links.indices { links[place].stalledUntil = now }
    links[stalled].stalledUntil = now + .seconds(100_000)
    isKind = true
    // Give the others something to do.
    for other in clients.indices where other != slot { try act(other) }
    let identity = clients[slot].identity
    try settle(excluding: identity)
    isKind = false
    if let place = place(of: id) { links[place].stalledUntil = now }
  }

  private mutating func settle(excluding identity: UInt64?) throws(SimulationFailure) {
    effects.executor.enter()
    for round in 0..<3000 {
      // A test decides how time passes, except where events are due without it.
      if !isDriven || !isInMotion || round % 50 == 49 {
        pass(effects.isBusy && !isDriven ? 200_000_000 : 50_000_000)
      }
      try changeProcess()
      try connectClients()
      socketsAreLarge = round % 2 == 0
      for slot in clients.indices {
        if clients[slot].isGhost {
          // The process of a ghost ends at some time, whether its clone has reconnected or not.
          try read(slot)
          if clients[slot].link != nil { try lose(slot) }
        } else if clients[slot].identity != identity {
          try read(slot)
          try tick(slot)
        }
      }
      strangersRead()
      try turn()
      sweep()
      let slot = clients.firstIndex { $0.identity == identity && !$0.isGhost }
      if isAtRest(excluding: slot), identity != nil || isDriven || !effects.isBusy {
        return try checkRest(excluding: slot)
      }
      // After the effects that end by themselves have had time to do so.
      if round % 40 == 39 { try hush() }
    }
    throw failure("does not come to rest: \(restlessness)")
  }

  /// Whether an event is due without time passing.
  private var isInMotion: Bool {
    isWoken || effects.isAwake || !jobs.isEmpty
      || clients.contains { client in client.connectAt.map { !(now < $0) } ?? false }
      || links.contains { !$0.toDaemon.isEmpty || !$0.toClient.isEmpty || !$0.unsent.isEmpty }
  }

  /// A description of what keeps the simulation from resting.
  private var restlessness: String {
    var parts = ["\(jobs.count) jobs, \(strangers.count) strangers, \(links.count) links"]
    for client in clients {
      let session = client.session
      parts.append("client \(client.identity)\(client.isGhost ? " (ghost)" : "")")
      parts.append("live \(session.isLive), \(session.unacknowledged) unanswered")
      for mirror in session.mirrors where !mirror.isLive {
        parts.append("mirror \(mirror.number) of \(mirror.path) not live")
      }
      guard let place = client.link.flatMap(place) else {
        parts.append("no connection")
        continue
      }
      let link = links[place]
      let bytes = (link.toDaemon.count, link.toClient.count, link.unsent.count)
      parts.append("\(bytes.0) bytes there, \(bytes.1) back, \(bytes.2) unsent")
      parts.append("paused \(link.isPaused), blocked \(link.isBlocked), cut \(link.isCut)")
    }
    parts.append("\(effects.count) tasks of effects: \(runningEffects)")
    if let daemon { parts.append("\(daemon.server.load)") } else { parts.append("no daemon") }
    return parts.joined(separator: "; ")
  }
}
