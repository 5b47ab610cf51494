import Lockstep
import Values
import Wire

// Limits of one user's share (`UserTable`), and the connections that pause for that.
extension Server {
  /// Add a connection to its user's account. Returns the goodbye if there is no room for it.
  mutating func admit(_ connection: inout ServerSession) -> Goodbye? {
    let (place, refusal) = users.enter(connection, among: connections.count, at: clock.now)
    connection.account = place
    return refusal
  }

  /// Count bytes of incomplete frames of a connection. The connection is closed if its user then
  /// has too many.
  mutating func notePartial(_ bytes: Int, _ place: Int) {
    let (id, account) = (connections[place: place].id, connections[place: place].account)
    let observed = users.countPartial(bytes, at: account)
    guard bytes > 0, observed > limits.partialBytesPerUser else { return }
    users.countPartial(-connections[place: place].frames.unfinished, at: account)
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

  /// The most bytes that should be read from a socket at once, of those that a shell has room for.
  public var readBytes: Int {
    users.hasLight(at: clock.now) ? UserTable.smallShare : .max
  }

  /// Change the conditions that decide whether a connection is read from, and command a pause or
  /// resume if the decision changes.
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

  /// Note that bytes were read from a connection, and pause its user's connections when the share
  /// of this turn is used up. O(those that wait) when that happens.
  @inline(__always)
  mutating func charge(_ place: Int, _ bytes: Int, _ commands: inout [Command]) {
    if users.isCharging { take(bytes, place, &commands) }
  }

  @inline(never)
  private mutating func take(_ bytes: Int, _ place: Int, _ commands: inout [Command]) {
    let (id, account) = (connections[place: place].id, connections[place: place].account)
    if users.charge(bytes, of: id, at: account, clock.now) {
      pause(connections[place: place].peer.uid, after: id, &commands)
    }
  }

  /// Charge a user for the changes of an action and its followers, and for the scopes that were looked at
  /// for them, if others are connected: an action that copies much, or below which thousands of mirrors
  /// are, is short. Returns whether it has exceeded its share by far: no more is read of the connection
  /// before the others have had their turns.
  @inline(__always)
  mutating func charge(changedBytes count: Int, looked: Int, at place: Int) -> Bool {
    users.isCrowded && take(changedBytes: count, looked: looked, at: place)
  }

  /// A scope that changes takes about as long as 32 bytes do; the few of an ordinary action are part of
  /// it, and no action is charged more than a share for the mirrors of others.
  @inline(never)
  private mutating func take(changedBytes count: Int, looked: Int, at place: Int) -> Bool {
    let bytes = count + min(32 * max(0, looked - 8), limits.turnBytesPerUser)
    let account = connections[place: place].account
    return users.charge(bytes, at: account, clock.now) && users.isInDebt(account, at: clock.now)
  }

  private mutating func pause(
    _ uid: UInt64, after last: ConnectionID?, _ commands: inout [Command]
  ) {
    for id in users.wait(uid, after: last, at: clock.now) {
      changeReading(of: id, &commands) { $0.flow.isWaiting = true }
    }
  }

  /// Begin a turn in which each user has a new share: some waiting connections are read from. A
  /// user whose actions exceeded a share by far waits for some turns. Returns whether another turn
  /// must follow for these users.
  mutating func share(_ commands: inout [Command]) -> Bool {
    var mustFollow = false
    for (uid, share) in users.beginTurn(at: clock.now) {
      switch share {
      case .debt:
        pause(uid, after: nil, &commands)
        mustFollow = true
      case .resumed(let ids, let moreWait):
        for id in ids where connections[id]?.flow.isWaiting == true {
          users.resume(id, of: uid)
          changeReading(of: id, &commands) { $0.flow.isWaiting = false }
        }
        // The connections that are read from now may have nothing to send.
        if moreWait { mustFollow = true }
      }
    }
    return mustFollow
  }
}
