import Values
import Wire

// Users are isolated from each other: the resources of each are limited over all its connections,
// and while two or more users are connected, so is the input of each in one turn. Beyond that share
// the connections of the user pause that have been read from in the turn, and a few of them resume in each
// turn, in order. Those that say nothing are not touched: a user may have thousands of mirrors that read,
// and to pause one takes a call of the kernel. If more than a few of these are read from in the same turn
// all the same, all pause.
//
// The connections of an only user share its turns, too, unless a single one brings it all: a turn would
// else last until all of them have been read from, which may be seconds, and another user that connects
// would wait for its end.
//
// A share of milliseconds is good for the throughput of users that have much to do, and bad for one who
// sends now and then and waits for the answer. So while there is a *light* user, one that has come or sent
// something lately and never as much as a small share in one turn, all others get only a small share of
// each turn, of some tens of microseconds. A user that exceeds it is *heavy* for a while, and so is one that
// has more connections with requests than its share of work is enough for. In a turn in which a light user is
// heard, requests of heavy ones are not answered, unless that was so in the last turn, too.

/// The accounts of the users that are connected, and the order in which they are served.
///
/// The account of a user whose last connection has ended is kept for a second, with all that it had used up.
///
/// Invariants: a user has an account while it has a connection; the sums of an account are
/// those of its connections; a user is in the queue to be answered exactly once while a connection
/// of it is; a connection that waits to be read from is in its queue once.
struct UserTable: Sendable {
  private let limits: Limits
  private var accounts: Slots<UInt64, Account>
  /// How many users have a connection.
  private var present = 0
  /// The users whose connections wait to be answered, in the order of their turns.
  private var askers: [UInt64] = []
  /// Those who have had their share of this turn.
  private var resting: [UInt64] = []
  /// The work by which answers of this turn may still exceed their grants, in units
  /// (`RequestQueue`).
  private(set) var overrunLeft = 0
  /// Whether a user has used a part of its share in this turn, or has connections that wait.
  private(set) var isSharing = false
  /// Whether input is charged: not if there is only one connection.
  private(set) var isCharging = false
  /// The connections of all users.
  private var connections = 0 {
    didSet { isCharging = connections > 1 }
  }
  /// The first connection of an only user that was read from in this turn, and what was read from it
  /// and all others.
  private var alone: (reader: ConnectionID?, bytes: Int, isUsedUp: Bool) = (nil, 0, false)
  /// Counts the turns.
  private var turn: UInt64 = 0
  /// The number of turns in which something was read that had been held back.
  private var releases: UInt64 = 0
  /// Whether a light user has been heard in this turn.
  private var hasHeardLight = false
  /// Whether requests of heavy users had to wait for that when there were some last.
  private var haveHeavyWaited = false
  /// The two users who were last seen to be light, the newer one first, and until when they count as
  /// that: so each user knows whether there is another.
  private var light: (newer: Light, older: Light)

  init(_ limits: Limits, at now: Instant) {
    self.limits = limits
    light = (Light(place: -1, until: now), Light(place: -1, until: now))
    accounts = Slots(vacant: Account(limits, at: now))
  }

  /// Whether turns are shared among users.
  @inline(__always)
  var isCrowded: Bool { present > 1 }

  /// The account at an index that `enter` returned, while a connection of its user exists.
  subscript(place place: Int) -> Account {
    @inline(__always) unsafeAddress { accounts.address(of: place) }
  }

  // MARK: Connections

  /// Add a connection to its user's account. Returns the account's index, and the goodbye if a
  /// limit is exceeded; `connections` counts those of all users before it.
  mutating func enter(
    _ session: borrowing ServerSession, among connections: Int, at now: Instant
  ) -> (place: Int, refusal: Goodbye?) {
    let uid = session.peer.uid
    if accounts.place(of: uid) == nil { accounts[uid] = Account(limits, at: now) }
    // Invariant: the account exists, since it was added above if it did not.
    let place = accounts.place(of: uid) ?? 0
    self.connections += 1
    if accounts[place: place].connections == 0 { present += 1 }
    accounts[place: place].connections += 1
    accounts[place: place].reading.insert(session.id)
    accounts[place: place].partialBytes += session.frames.unfinished
    return (place, refusal(of: uid, at: place, among: connections, now))
  }

  private mutating func refusal(
    of uid: UInt64, at place: Int, among connections: Int, _ now: Instant
  ) -> Goodbye? {
    if connections >= limits.connections {
      return Self.crowded(
        "connections",
        "the daemon serves \(limits.connections) connections and has no room for more",
        limits.connections, connections + 1)
    }
    if accounts[place: place].connections > limits.connectionsPerUser {
      return Self.crowded(
        "connectionsPerUser",
        "the user \(uid) has \(limits.connectionsPerUser) connections and may have no more",
        limits.connectionsPerUser, accounts[place: place].connections)
    }
    if !accounts[place: place].accepts.take(at: now) {
      return Self.crowded(
        "connectionsPerSecond",
        "the user \(uid) connects more than \(limits.connectionsPerSecond) times a second",
        limits.connectionsPerSecond, limits.connectionsPerSecond + 1)
    }
    return nil
  }

  private static func crowded(
    _ name: String, _ text: String, _ limit: Int, _ observed: Int
  ) -> Goodbye {
    Goodbye(
      .limit, text, limit: LimitBreach(name, limit: limit, observed: observed), retryAfter: 1000)
  }

  /// Remove a connection that has ended from its user's account.
  mutating func remove(_ session: borrowing ServerSession, at now: Instant) {
    let (uid, place) = (session.peer.uid, session.account)
    connections -= 1
    accounts[place: place].connections -= 1
    accounts[place: place].reading.remove(session.id)
    accounts[place: place].leaveFresh(session.id)
    accounts[place: place].subscriptions -= session.subscriptions.count
    accounts[place: place].unsentBytes &-= session.flow.unsentBytes
    accounts[place: place].partialBytes -= session.frames.unfinished
    if accounts[place: place].connections == 0 {
      present -= 1
      accounts[place: place].leave(at: now)
      askers.removeAll { $0 == uid }
      resting.removeAll { $0 == uid }
      // The connections of an only user have waited for the sake of others.
      if present == 1 { letAllResume() }
    }
  }

  private mutating func letAllResume() {
    for uid in accounts.keys {
      if let place = accounts.place(of: uid) { accounts[place: place].resumes = Self.mostResumes }
    }
  }

  /// Forget the accounts whose last connection ended so long ago that it is as if they had used up nothing.
  mutating func forgetFormer(at now: Instant) {
    if accounts.count == present { return }
    for uid in accounts.keys.sorted() {
      guard let place = accounts.place(of: uid), accounts[place: place].connections == 0 else {
        continue
      }
      if now >= accounts[place: place].leftAt + Self.formerTime { accounts[uid] = nil }
    }
  }

  /// In this time rates are as if nothing had been taken, and a user is not heavy any more.
  private static var formerTime: Duration { .seconds(1) }

  /// Note that a connection was admitted: it should be welcomed soon.
  mutating func noteArrival(at place: Int, _ now: Instant) {
    if isCrowded { noteLight(place, at: now) }
  }

  /// Add to the number of subscriptions; the difference may be negative.
  mutating func countSubscription(_ difference: Int, at place: Int) {
    accounts[place: place].subscriptions += difference
  }

  /// Whether a user may have one more subscription.
  func maySubscribe(at place: Int) -> Bool {
    accounts[place: place].subscriptions < limits.subscriptionsPerUser
  }

  /// Add to the number of unsent bytes; the difference may be negative. Returns the number. It wraps, and does
  /// not trap: a recording may give each of many connections more than any could have.
  @discardableResult
  mutating func countUnsent(_ difference: Int, at place: Int) -> Int {
    accounts[place: place].unsentBytes &+= difference
    return accounts[place: place].unsentBytes
  }

  /// Add to the number of bytes of incomplete frames; the difference may be negative. Returns the
  /// number.
  @discardableResult
  mutating func countPartial(_ difference: Int, at place: Int) -> Int {
    accounts[place: place].partialBytes += difference
    return accounts[place: place].partialBytes
  }

  // MARK: Rates

  /// Take a token of a user's rate of actions. Returns false if there is none.
  @inline(__always)
  mutating func takeAction(at place: Int, _ now: Instant) -> Bool {
    accounts[place: place].actions.take(at: now)
  }

  /// Whether a denial should be logged: rate limited to once a second for each user, because a
  /// denial is cheap to provoke.
  mutating func takeDenial(of uid: UInt64, _ now: Instant) -> Bool {
    accounts.place(of: uid).map { accounts[place: $0].denials.take(at: now) } ?? false
  }

  // MARK: Shares of a turn

  /// A share of some tens of microseconds.
  static var smallShare: Int { 512 }
  private static var mostResumes: Int { 1024 }
  /// How many connections of a user that wait resume in a turn while another user is light.
  private static var mostSmallResumes: Int { 2 }
  private static var heavyTime: Duration { .seconds(1) }
  private static var lightTime: Duration { .milliseconds(100) }

  private struct Light: Sendable {
    var place: Int
    var until: Instant
  }

  /// Whether there is a light user.
  func hasLight(at now: Instant) -> Bool {
    isCrowded && (now < light.newer.until || now < light.older.until)
  }

  /// Whether a user gets small shares, because another one is light.
  private func isShareSmall(_ place: Int, at now: Instant) -> Bool {
    isCrowded
      && (light.newer.place != place && now < light.newer.until
        || light.older.place != place && now < light.older.until)
  }

  /// The share of a user in a turn, in bytes.
  private func share(of place: Int, at now: Instant) -> Int {
    isShareSmall(place, at: now)
      ? min(Self.smallShare, limits.turnBytesPerUser) : limits.turnBytesPerUser
  }

  /// Note that a user has sent little, or has come: it is light unless it had much to do lately.
  private mutating func noteLight(_ place: Int, at now: Instant) {
    if now < accounts[place: place].heavyUntil { return }
    hasHeardLight = true
    if light.newer.place != place { light.older = light.newer }
    light.newer = Light(place: place, until: now + Self.lightTime)
  }

  private mutating func noteHeavy(_ place: Int, at now: Instant) {
    accounts[place: place].heavyUntil = now + Self.heavyTime
    if light.newer.place == place { light.newer.until = now }
    if light.older.place == place { light.older.until = now }
  }

  /// Charge a user for bytes that a connection has sent in this turn. Returns whether its share is used
  /// up.
  mutating func charge(_ bytes: Int, of id: ConnectionID, at place: Int, _ now: Instant) -> Bool {
    let isLate =
      isCrowded
      ? accounts[place: place].turnBytes >= share(of: place, at: now) : alone.isUsedUp
    accounts[place: place].noteRead(id, bytes, in: turn, isLate: isLate)
    if isCrowded { return charge(bytes, at: place, now) }
    alone.bytes += bytes
    if alone.reader == nil { alone.reader = id }
    guard alone.bytes >= limits.turnBytesPerUser,
      alone.reader != id || !accounts[place: place].waiting.isEmpty
    else { return false }
    alone.isUsedUp = true
    isSharing = true
    accounts[place: place].turnBytes = alone.bytes
    return true
  }

  /// Charge a user for bytes of this turn, if other users are connected. Returns whether its share
  /// is used up.
  mutating func charge(_ bytes: Int, at place: Int, _ now: Instant) -> Bool {
    guard isCrowded else { return false }
    isSharing = true
    accounts[place: place].turnBytes += bytes
    let used = accounts[place: place].turnBytes
    if used >= Self.smallShare {
      noteHeavy(place, at: now)
    } else {
      noteLight(place, at: now)
    }
    return used >= share(of: place, at: now)
  }

  /// Queue connections of a user that are read from until their turns, `last` at the end. Returns them: those
  /// that have been read from in this turn, or all, if many others have been after the share was used up.
  mutating func wait(
    _ uid: UInt64, after last: ConnectionID?, at now: Instant
  ) -> [ConnectionID] {
    guard let place = accounts.place(of: uid) else { return [] }
    let (size, late) = (share(of: place, at: now), accounts[place: place].heard.late)
    let owes = accounts[place: place].owes || isInDebt(place, at: now)
    let most = owes ? Self.mostLateInDebt : Self.mostLate
    return accounts[place: place].wait(
      after: last, isAll: late.reads > most || late.bytes >= max(size, 4 * Self.smallShare))
  }

  /// Whether a user has exceeded its share by far.
  func isInDebt(_ place: Int, at now: Instant) -> Bool {
    let size = share(of: place, at: now)
    // The excess of one read over the share is forgiven.
    return isCrowded && accounts[place: place].turnBytes - size > 4 * size
  }

  /// So many short reads of one turn may be beyond the share before all connections of the user pause; and so
  /// many of all turns of a debt.
  private static var mostLate: Int { 16 }
  private static var mostLateInDebt: Int { 4 }

  /// Note that a connection that waited is read from again.
  mutating func resume(_ id: ConnectionID, of uid: UInt64) {
    guard let place = accounts.place(of: uid) else { return }
    accounts[place: place].reading.insert(id)
    accounts[place: place].fresh.append(id)
  }

  /// The share of a user in the turn that begins.
  enum Share {
    /// Its actions exceeded a share by far: it waits for another turn.
    case debt
    /// These connections are read from again; with whether more of them wait.
    case resumed([ConnectionID], moreWait: Bool)
  }

  /// Begin to read what was held back: a share of each user.
  mutating func beginReleasing() { releases += 1 }

  /// Whether more may be read in this turn of what was held back of a user: not while it is in debt, except
  /// for a large action, which has been charged.
  func mayRelease(at place: Int, isBeforeFrame: Bool, _ now: Instant) -> Bool {
    if isCrowded, !isBeforeFrame, accounts[place: place].owes { return false }
    let released = accounts[place: place].released
    return released.turn != releases || released.bytes < share(of: place, at: now)
  }

  /// Note that so much has been read of what had been held back of a connection.
  mutating func noteReleased(_ bytes: Int, of id: ConnectionID, at place: Int) {
    accounts[place: place].noteReleased(id, in: turn)
    let before = accounts[place: place].released
    accounts[place: place].released = (
      releases, (before.turn == releases ? before.bytes : 0) + max(1, bytes)
    )
  }

  /// Begin a turn in which each user has a new share. Returns the shares, sorted by user.
  mutating func beginTurn(at now: Instant) -> [(uid: UInt64, share: Share)] {
    turn &+= 1
    alone = (nil, 0, false)
    hasHeardLight = false
    guard isSharing else { return [] }
    isSharing = false
    var shares: [(uid: UInt64, share: Share)] = []
    for uid in accounts.keys.sorted() {
      // What a user without connections owes is for when it is back.
      guard let place = accounts.place(of: uid), accounts[place: place].connections > 0 else {
        continue
      }
      let debt = accounts[place: place].turnBytes - share(of: place, at: now)
      let isInDebt = isInDebt(place, at: now)
      accounts[place: place].turnBytes = isInDebt ? debt : 0
      accounts[place: place].owes = isInDebt
      if isInDebt {
        shares.append((uid, .debt))
        isSharing = true
        continue
      }
      accounts[place: place].fresh = []
      let count = accounts[place: place].waiting.count
      guard count > 0 else { continue }
      // To stop reading from one and to begin again takes two or three calls of the kernel.
      let limit = isShareSmall(place, at: now) ? Self.mostSmallResumes : Self.mostResumes
      // Twice as many as in the last turn if those did not use up the share, else half: it takes one
      // that sends a whole buffer, and many that send an action each.
      let before = min(accounts[place: place].resumes, limit)
      let most = debt < 0 ? min(2 * before, limit) : max(1, before / 2)
      accounts[place: place].resumes = most
      let resumed = accounts[place: place].resume(most)
      shares.append((uid, .resumed(resumed, moreWait: count > resumed.count)))
      // Until those have been read from, or had a turn for it.
      isSharing = true
    }
    return shares
  }

  // MARK: Queues of requests

  /// Whether a connection waits for its turn to be answered.
  var isAsking: Bool { !askers.isEmpty || !resting.isEmpty }

  /// Put a connection that has requests into its user's queue.
  mutating func lineUp(_ id: ConnectionID, of uid: UInt64, at place: Int) {
    if accounts[place: place].asking.isEmpty { askers.append(uid) }
    accounts[place: place].asking.append(id)
  }

  /// Divide the turn's work on requests: users take turns, and so do the connections of each.
  mutating func grant(_ work: Int, at now: Instant) {
    overrunLeft = work
    askers += resting
    resting = []
    let isLightFirst = hasHeardLight && !haveHeavyWaited
    if isLightFirst { letHeavyRest(at: now) }
    haveHeavyWaited = isLightFirst && !resting.isEmpty
    let share = work / max(1, askers.count)
    for place in askers.compactMap({ accounts.place(of: $0) }) {
      accounts[place: place].grant = max(
        Self.leastGrant, share / max(1, accounts[place: place].asking.count))
      accounts[place: place].workLeft = isShareSmall(place, at: now) ? Self.smallWork : .max
    }
  }

  /// Have the requests of heavy users wait for another turn.
  private mutating func letHeavyRest(at now: Instant) {
    var others: [UInt64] = []
    for uid in askers {
      let place = accounts.place(of: uid)
      if let place, now < accounts[place: place].heavyUntil {
        resting.append(uid)
      } else {
        others.append(uid)
      }
    }
    askers = others
  }

  private static var leastGrant: Int { 250 }
  /// The work on requests of a user in a turn, in units, while another one is light.
  private static var smallWork: Int { 40 }

  /// The most bytes of a page of a report for a user: while another one is light, as many as some rows
  /// take.
  func pageBytes(at place: Int, _ now: Instant) -> Int {
    isShareSmall(place, at: now) ? 2048 : .max
  }

  /// Note that work on a user's requests is done in this turn.
  mutating func spend(_ work: Int, at place: Int) { accounts[place: place].workLeft -= work }

  /// Take the next connection to be answered from its queue, with its grant. It may have ended
  /// since.
  mutating func nextAsking(at now: Instant) -> (id: ConnectionID, grant: Int)? {
    while !askers.isEmpty {
      let uid = askers.removeFirst()
      guard let place = accounts.place(of: uid), !accounts[place: place].asking.isEmpty else {
        continue
      }
      guard accounts[place: place].workLeft > 0 else {
        noteHeavy(place, at: now)
        resting.append(uid)
        continue
      }
      let id = accounts[place: place].asking.removeFirst()
      if !accounts[place: place].asking.isEmpty { askers.append(uid) }
      return (id, min(accounts[place: place].grant, accounts[place: place].workLeft))
    }
    return nil
  }

  /// Note the work by which answers exceeded their grant.
  mutating func noteOverrun(_ work: Int) { overrunLeft -= work }
}
