import Lockstep
import Values
import Wire

// Users are kept apart: what one of them takes, with however many connections, is bounded, and
// where two or more are connected, so is what it may bring in one turn. Beyond that share all its
// connections pause, and a few of them go on in each turn, one after the other.

/// What the connections of one user take together.
struct Account: Sendable {
  var connections = 0
  var subscriptions = 0
  /// Bytes that have been sent to the user and not been written.
  var unsentBytes = 0
  /// Bytes of frames whose end has not come.
  var partialBytes = 0
  /// Bytes that have been read from the user in this turn, and those of the patches that its
  /// actions made; with what earlier turns had far beyond the share.
  var turnBytes = 0
  /// Connections that are not read from until it is their turn, in its order.
  var waiting: [ConnectionID] = []
  /// Connections that have asked something and wait for their turn to be answered, in its order.
  var asking: [ConnectionID] = []
  /// What each of these is granted in this turn, in units of work.
  var grant = 0
  var accepts: TokenBucket
  var actions: TokenBucket
  /// What the log is told of denials.
  var denials: TokenBucket

  init(_ limits: Limits, at now: Instant) {
    accepts = TokenBucket(perSecond: limits.connectionsPerSecond, at: now)
    actions = TokenBucket(perSecond: limits.actionsPerSecond, at: now)
    denials = TokenBucket(perSecond: 1, at: now)
  }
}

/// So many a second, and after a quiet second as many at once.
struct TokenBucket: Sendable {
  private let perSecond: Double
  private var tokens: Double
  private var time: Instant

  init(perSecond: Int, at now: Instant) {
    self.perSecond = Double(perSecond)
    tokens = Double(perSecond)
    time = now
  }

  /// Take one, if there is one.
  mutating func take(at now: Instant) -> Bool {
    if now > time {
      tokens = min(perSecond, tokens + Double(now.nanoseconds - time.nanoseconds) / 1e9 * perSecond)
      time = now
    }
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}

extension Server {
  /// Enter a connection into its user's account. Returns why there is no room for it, if there is
  /// none.
  mutating func admit(_ connection: inout ServerSession) -> Goodbye? {
    let peer = connection.peer
    var account = accounts[peer.uid] ?? Account(limits, at: clock.now)
    defer {
      accounts[peer.uid] = account
      connection.account = accounts.place(of: peer.uid) ?? 0
    }
    account.connections += 1
    account.partialBytes += connection.frames.unfinished
    if connections.count >= limits.connections {
      return crowded(
        "connections",
        "the daemon serves \(limits.connections) connections and has no room for more",
        limits.connections, connections.count + 1)
    }
    if account.connections > limits.connectionsPerUser {
      return crowded(
        "connectionsPerUser",
        "the user \(peer.uid) has \(limits.connectionsPerUser) connections and may have no more",
        limits.connectionsPerUser, account.connections)
    }
    if !account.accepts.take(at: clock.now) {
      return crowded(
        "connectionsPerSecond",
        "the user \(peer.uid) connects more than \(limits.connectionsPerSecond) times a second",
        limits.connectionsPerSecond, limits.connectionsPerSecond + 1)
    }
    return nil
  }

  private func crowded(_ name: String, _ text: String, _ limit: Int, _ observed: Int) -> Goodbye {
    Goodbye(
      .limit, text, limit: LimitBreach(name, limit: limit, observed: observed), retryAfter: 1000)
  }

  /// A connection is gone.
  mutating func dismiss(_ connection: ServerSession) {
    let uid = connection.peer.uid
    accounts[uid]?.connections -= 1
    accounts[uid]?.subscriptions -= connection.subscriptions.count
    accounts[uid]?.unsentBytes -= connection.unsentBytes
    accounts[uid]?.partialBytes -= connection.frames.unfinished
    if accounts[uid]?.connections == 0 { accounts[uid] = nil }
  }

  /// Note that so many bytes more of a connection's wait for the end of their frame. One with whom
  /// its user has too many is let go.
  mutating func notePartial(_ bytes: Int, _ place: Int) {
    let (id, account) = (connections[place: place].id, connections[place: place].account)
    accounts[place: account].partialBytes += bytes
    let observed = accounts[place: account].partialBytes
    guard bytes > 0, observed > limits.partialBytesPerUser else { return }
    accounts[place: account].partialBytes -= connections[place: place].frames.unfinished
    connections[place: place].frames = FrameDecoder(limit: limits.frameBytes)
    leave(
      id,
      Goodbye(
        .limit, "frames of the user \(connections[place: place].peer.uid) are unfinished",
        limit: LimitBreach(
          "partialBytesPerUser", limit: limits.partialBytesPerUser, observed: observed),
        retryAfter: 1000))
  }

  // MARK: Shares

  /// Change what decides whether a connection is read from, and say so if it is now, or no more.
  mutating func changeReading(
    of id: ConnectionID, _ commands: inout [Command], _ change: (inout ServerSession) -> Void
  ) {
    guard let place = connections.place(of: id) else { return }
    let mayRead = connections[place: place].mayRead
    change(&connections[place: place])
    if connections[place: place].mayRead == mayRead { return }
    if mayRead {
      if !faults.neverPauses { commands.append(.pauseReading(id)) }
    } else if !faults.neverResumes {
      commands.append(.resumeReading(id))
    }
  }

  /// Note that bytes were read from a connection, and pause its user's once the share of this turn
  /// is used up. O(the user's connections) when that happens.
  @inline(__always)
  mutating func charge(_ place: Int, _ bytes: Int, _ commands: inout [Command]) {
    guard accounts.count > 1 else { return }
    let account = connections[place: place].account
    isSharing = true
    accounts[place: account].turnBytes += bytes
    if accounts[place: account].turnBytes > limits.turnBytesPerUser {
      pause(connections[place: place].peer.uid, &commands)
    }
  }

  /// Charge a user for what an action and its followers did, where others are connected: a copy is
  /// short to say.
  @inline(__always)
  mutating func charge(changedBytes count: Int, at place: Int) {
    guard accounts.count > 1 else { return }
    isSharing = true
    accounts[place: connections[place: place].account].turnBytes += count
  }

  private mutating func pause(_ uid: UInt64, _ commands: inout [Command]) {
    let others = connections.keys.filter {
      guard let connection = connections[$0] else { return false }
      return connection.peer.uid == uid && !connection.isWaiting
    }
    for id in others.sorted() {
      accounts[uid]?.waiting.append(id)
      changeReading(of: id, &commands) { $0.isWaiting = true }
    }
  }

  /// Begin a turn in which each user has a share again: some waiting connections are read from. A
  /// user whose actions did much more than a share waits for some turns.
  mutating func share(_ commands: inout [Command]) {
    guard isSharing else { return }
    isSharing = false
    for uid in accounts.keys.sorted() {
      let debt = (accounts[uid]?.turnBytes ?? 0) - limits.turnBytesPerUser
      // What one read brings beyond the share is forgiven.
      let isInDebt = accounts.count > 1 && debt > 4 * limits.turnBytesPerUser
      accounts[uid]?.turnBytes = isInDebt ? debt : 0
      if isInDebt {
        pause(uid, &commands)
        isSharing = true
        mustShare = true
        continue
      }
      guard let waiting = accounts[uid]?.waiting, !waiting.isEmpty else { continue }
      // As many as use up the share if each of them brings a whole buffer; alone, all.
      let most = accounts.count > 1 ? max(1, limits.turnBytesPerUser >> 16) : waiting.count
      for id in waiting.prefix(most) {
        guard connections[id]?.isWaiting == true else { continue }
        changeReading(of: id, &commands) { $0.isWaiting = false }
      }
      accounts[uid]?.waiting.removeFirst(min(most, waiting.count))
      if waiting.count > most {
        isSharing = true
        // The connections that are read from now may have nothing to say.
        mustShare = true
      }
    }
  }

  /// Why a user may not send an action now.
  mutating func overuse(_ place: Int) -> Rejection? {
    if core.effectCount > limits.effects {
      return Rejection(
        .limit, "\(core.effectCount) effects run, and effects is \(limits.effects)")
    }
    if !accounts[place: connections[place: place].account].actions.take(at: clock.now) {
      let uid = connections[place: place].peer.uid
      return Rejection(
        .limit, "the user \(uid) sends more than \(limits.actionsPerSecond) actions a second")
    }
    return nil
  }
}
