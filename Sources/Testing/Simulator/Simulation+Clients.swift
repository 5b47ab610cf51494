import CBOR
import ClientCore
import DaemonCore
import Lockstep
import Values
import Wire

/// The client processes, and their users.
extension Simulation {
  mutating func addClient() {
    var configuration = ClientSession.Configuration(label: "client \(nextIdentity)")
    configuration.frameBytes = plan.limits.frameBytes
    configuration.digestInterval = plan.digestInterval
    configuration.wantsDecisions = plan.optimism > 0 || areOptimistic
    var session = ClientSession(configuration, seed: random.next())
    #if FAULTS
      session.skipsBaseCheck = plan.skipsBaseCheck
      session.skipsDecisionCheck = plan.skipsDecisionCheck
      session.keepsRejected = plan.keepsRejected
    #endif
    var commands: [ClientSession.Command] = []
    session.start(at: now, into: &commands)
    if isDriven {
      let number = session.subscribe(
        to: .root, as: Mirrored.self, everyRevision: chance(500), into: &commands)
      if areOptimistic { session.showOptimistically(number) }
    }
    for _ in 0..<(isDriven ? 0 : below(plan.subscriptions + 1)) {
      let (path, everyRevision) = (feature.path(&random), chance(500))
      feature.subscribe(
        &session, to: path, everyRevision: everyRevision, isOptimistic: chance(plan.optimism),
        into: &commands)
    }
    let uid = plan.users[Int(nextIdentity) % plan.users.count]
    var client = SimulatedClient(nextIdentity, uid: uid, session, starts: starts)
    nextIdentity += 1
    client.connectAt = now
    clients.append(client)
  }

  /// Start a second process with the same session; the first does nothing by itself any more.
  mutating func clone(_ slot: Int) throws(SimulationFailure) {
    guard !clients[slot].isGhost, clients[slot].link != nil, clients[slot].session.isLive else {
      return
    }
    count("clones")
    var clone = clients[slot]
    clients[slot].isGhost = true
    clone.link = nil
    clone.seen = [:]
    clients.append(clone)
    try lose(clients.count - 1)
  }

  // MARK: The socket

  mutating func connectClients() throws(SimulationFailure) {
    for slot in clients.indices {
      guard let time = clients[slot].connectAt, !(now < time) else { continue }
      clients[slot].connectAt = nil
      if daemon == nil || !isKind && chance(plan.refusals) {
        try lose(slot)
      } else {
        let id = try open(uid: clients[slot].uid)
        clients[slot].link = id
        try update(slot) { $0.connected(at: $1, into: &$2) }
      }
    }
  }

  mutating func open(uid: UInt64) throws(SimulationFailure) -> ConnectionID {
    let id = ConnectionID(nextConnection)
    nextConnection += 1
    links.append(Link(id, capacity: plan.socketBytes))
    let token = SessionToken(high: random.next(), low: random.next())
    try deliver(.opened(id, Peer(pid: id.rawValue, uid: uid, gid: 1000), token))
    return id
  }

  /// A client's connection is lost, or could not be made.
  mutating func lose(_ slot: Int) throws(SimulationFailure) {
    if let id = clients[slot].link, let place = place(of: id) { links[place].leave() }
    clients[slot].link = nil
    try update(slot) { $0.disconnected(at: $1, into: &$2) }
  }

  /// A client reads some of the bytes that have arrived.
  mutating func read(_ slot: Int) throws(SimulationFailure) {
    guard let id = clients[slot].link, let place = place(of: id) else { return }
    if now < links[place].stalledUntil { return }
    if isKind, socketsAreLarge {
      // All unsent bytes arrive at once, however small the buffer is.
      links[place].toClient += links[place].unsent
      links[place].unsent = []
      links[place].pump()
    }
    if !links[place].toClient.isEmpty {
      let bytes = Link.take(
        portion(links[place].toClient.count), from: &links[place].toClient)
      links[place].pump()
      try update(slot) { session, now, commands in
        bytes.withUnsafeBytes { session.received($0, at: now, into: &commands) }
      }
      try checkMirrors(slot)
    } else if !links[place].daemonIsOpen || links[place].isCut && (isKind || chance(250)) {
      try lose(slot)
    }
  }

  mutating func tick(_ slot: Int) throws(SimulationFailure) {
    if let id = clients[slot].link, let place = place(of: id), now < links[place].stalledUntil {
      return
    }
    try update(slot) { $0.tick(at: $1, into: &$2) }
  }

  mutating func close(_ slot: Int) throws(SimulationFailure) {
    if clients[slot].isGhost { return }
    count("closes")
    try update(slot) { session, _, commands in session.close(into: &commands) }
  }

  // MARK: The user

  /// The user of a client acts.
  mutating func act(_ slot: Int) throws(SimulationFailure) {
    if clients[slot].isGhost { return }
    // A test's clients do by themselves only what changes no state.
    switch isDriven ? 3 + below(3) : below(20) {
    case 0, 1:
      guard clients[slot].session.mirrors.count <= plan.subscriptions else { return }
      let path = feature.path(&random)
      let everyRevision = chance(500)
      let isOptimistic = chance(plan.optimism)
      try update(slot) { [feature] session, _, commands in
        feature.subscribe(
          &session, to: path, everyRevision: everyRevision, isOptimistic: isOptimistic,
          into: &commands)
      }
    case 2:
      guard let mirror = clients[slot].session.mirrors.first else { return }
      clients[slot].seen[mirror.number] = nil
      try update(slot) { session, _, commands in
        session.unsubscribe(mirror.number, into: &commands)
      }
    case 3: try update(slot) { session, _, commands in session.ping(7, into: &commands) }
    case 4:
      guard let mirror = clients[slot].session.mirrors.last else { return }
      try update(slot) { session, _, commands in
        session.requestDigest(of: mirror.number, into: &commands)
      }
    case 5:
      let name = ["status", "clients", "limits", "?"][below(4)]
      try update(slot) { session, _, commands in session.query(1, name, into: &commands) }
    default:
      guard clients[slot].session.unacknowledged < 100 else { return }
      for _ in 0..<(chance(100) ? 1 + below(40) : 1) {
        if chance(20) {
          try sendMalformed(slot)
        } else if let action = feature.action(&random) {
          _ = try send(action, from: slot)
        }
      }
    }
  }

  /// Send an action, which shows before it is answered if that is said, or else if the seed draws it.
  /// Returns its number, or nil if it exceeds the frame limit and is not sent.
  mutating func send(
    _ action: R.Action, from slot: Int, optimistically isOptimistic: Bool? = nil
  ) throws(SimulationFailure) -> UInt64? {
    let tag = Tag(client: clients[slot].identity, number: clients[slot].sent + 1)
    var encoder = CBOREncoder()
    Tagged(tag, action).encode(into: &encoder)
    guard encoder.bytes.count + 64 <= plan.limits.frameBytes else { return nil }
    let isOptimistic = isOptimistic ?? chance(plan.optimism)
    if isOptimistic { clients[slot].optimistic.insert(tag.number) }
    try send(encoder.bytes, tag, slot, isOptimistic: isOptimistic)
    if isOptimistic { try checkShowsAtOnce(tag, slot) }
    return tag.number
  }

  private mutating func sendMalformed(_ slot: Int) throws(SimulationFailure) {
    let tag = Tag(client: clients[slot].identity, number: clients[slot].sent + 1)
    clients[slot].malformed.insert(tag.number)
    var encoder = CBOREncoder()
    encoder.array(2)
    encoder.encode("no action")
    encoder.encode(tag.number)
    try send(encoder.bytes, tag, slot)
  }

  private mutating func send(
    _ payload: [UInt8], _ tag: Tag, _ slot: Int, isOptimistic: Bool = false
  ) throws(SimulationFailure) {
    clients[slot].sent += 1
    count("actions")
    var id = ActionID(0)
    let mark: Mark =
      Int.random(in: 0..<1000, using: &diskRandom) < plan.durableActions ? .durable : .applied
    try update(slot) { session, _, commands in
      id = session.send(payload, mark, isOptimistic: isOptimistic, into: &commands)
    }
    guard id.rawValue == tag.number else {
      throw failure("\(tag) was given the number \(id.rawValue)")
    }
  }

  // MARK: Commands

  /// Call a client's session, and perform its commands.
  mutating func update(
    _ slot: Int,
    _ body: (
      inout ClientSession, Instant, inout [ClientSession.Command]
    ) -> Void
  ) throws(SimulationFailure) {
    var commands: [ClientSession.Command] = []
    body(&clients[slot].session, now, &commands)
    var isLost = false
    var refused: [UInt64] = []
    for command in commands {
      switch command {
      case .connect(let wait): clients[slot].connectAt = now + wait
      case .send(let bytes):
        // A ghost sends nothing more: its clone would not know of it.
        guard let id = clients[slot].link, let place = place(of: id), !clients[slot].isGhost
        else { continue }
        if !links[place].isCut && links[place].daemonIsOpen {
          links[place].toDaemon.append(contentsOf: bytes)
        }
      case .disconnect: isLost = true
      case .notify(let notice):
        if case .refused(let number, _) = notice { refused.append(number) }
        try checkNotice(notice, slot)
      }
    }
    if clients[slot].isGhost {
      // The process no longer exists, so it does not reconnect.
      clients[slot].connectAt = nil
    }
    for number in refused {
      try update(slot) { session, _, commands in
        session.unsubscribe(number, into: &commands)
      }
    }
    try checkViews(slot)
    if isLost || clients[slot].session.hasEnded && clients[slot].link != nil { try lose(slot) }
  }
}

extension SimulatedFeature {
  /// A mirror of the whole in which actions show is of the state's own type, and one of a part with a
  /// reducer is of the part's: they are reduced in it.
  fileprivate func subscribe(
    _ session: inout ClientSession, to path: Path, everyRevision: Bool, isOptimistic: Bool,
    into commands: inout [ClientSession.Command]
  ) {
    let number =
      if let part, !path.keys.isEmpty {
        part.subscribe(&session, to: path, everyRevision: everyRevision, into: &commands)
      } else if isOptimistic, path.keys.isEmpty {
        session.subscribe(
          to: path, as: R.State.self, everyRevision: everyRevision, into: &commands)
      } else {
        session.subscribe(
          to: path, as: Mirrored.self, everyRevision: everyRevision, into: &commands)
      }
    if isOptimistic { session.showOptimistically(number) }
  }
}
