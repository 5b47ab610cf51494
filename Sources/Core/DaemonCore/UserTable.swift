import Values
import Wire

// Users are kept apart: what one of them takes, with however many connections, is bounded, and
// where two or more are connected, so is what each may bring in one turn. Beyond that share all its
// connections pause, and a few of them go on in each turn, one after the other.

/// What the connections of one user take together.
struct Account: Sendable {
  fileprivate(set) var connections = 0
  fileprivate(set) var subscriptions = 0
  /// Bytes that were sent to the user and are not written yet.
  fileprivate(set) var unsentBytes = 0
  /// Bytes of frames whose end has not come.
  fileprivate(set) var partialBytes = 0
  /// Bytes that were read from the user in this turn, and those of the patches that its actions
  /// made; with the debt of earlier turns that went far beyond the share.
  fileprivate var turnBytes = 0
  /// Connections that are not read from until it is their turn, in its order.
  fileprivate var waiting: [ConnectionID] = []
  /// Connections that have asked something and wait for their turn to be answered, in its order.
  fileprivate var asking: [ConnectionID] = []
  /// What each of these is granted in this turn, in units of work.
  fileprivate var grant = 0
  fileprivate var accepts: TokenBucket
  fileprivate var actions: TokenBucket
  /// What the log is told of denials.
  fileprivate var denials: TokenBucket

  fileprivate init(_ limits: Limits, at now: Instant) {
    accepts = TokenBucket(perSecond: limits.connectionsPerSecond, at: now)
    actions = TokenBucket(perSecond: limits.actionsPerSecond, at: now)
    denials = TokenBucket(perSecond: 1, at: now)
  }
}

/// The accounts of the users that are connected, and the order in which they are served.
///
/// Invariants: a user has an account exactly while it has a connection; the sums of an account are
/// those of its connections; a user is in line to be answered exactly once while a connection of it
/// is; a connection that waits to be read from waits once.
struct UserTable: Sendable {
  private let limits: Limits
  private var accounts: Slots<UInt64, Account>
  /// The users of whom connections have asked something, in the order of their turns.
  private var askers: [UInt64] = []
  /// How much more work answers of this turn may be than was granted, in units (`RequestQueue`).
  private(set) var overrunLeft = 0
  /// Whether a user has used a part of its share in this turn, or has connections that wait.
  private(set) var isSharing = false

  init(_ limits: Limits, at now: Instant) {
    self.limits = limits
    accounts = Slots(vacant: Account(limits, at: now))
  }

  /// Whether turns are shared: one user alone takes them whole.
  var isCrowded: Bool { accounts.count > 1 }

  /// The account at an index that `enter` returned, while a connection of its user is there.
  subscript(place place: Int) -> Account {
    @inline(__always) _read { yield accounts[place: place] }
  }

  // MARK: Connections

  /// Enter a connection into its user's account. Returns the index of that, and why the connection
  /// cannot stay if a limit is reached; `connections` counts those of all users before it.
  mutating func enter(
    _ session: borrowing ServerSession, among connections: Int, at now: Instant
  ) -> (place: Int, refusal: Goodbye?) {
    let uid = session.peer.uid
    if accounts.place(of: uid) == nil { accounts[uid] = Account(limits, at: now) }
    // Invariant: it has just been made, if it was not there.
    let place = accounts.place(of: uid) ?? 0
    accounts[place: place].connections += 1
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

  /// Take a connection that has ended out of its user's account.
  mutating func remove(_ session: borrowing ServerSession) {
    let (uid, place) = (session.peer.uid, session.account)
    accounts[place: place].connections -= 1
    accounts[place: place].subscriptions -= session.subscriptions.count
    accounts[place: place].unsentBytes -= session.unsentBytes
    accounts[place: place].partialBytes -= session.frames.unfinished
    if accounts[place: place].connections == 0 { accounts[uid] = nil }
  }

  /// Count one subscription more, or one less.
  mutating func countSubscription(_ difference: Int, at place: Int) {
    accounts[place: place].subscriptions += difference
  }

  /// Whether a user may subscribe once more.
  func maySubscribe(at place: Int) -> Bool {
    accounts[place: place].subscriptions < limits.subscriptionsPerUser
  }

  /// Count bytes that were sent and are not written, or are now. Returns how many there are.
  @discardableResult
  mutating func countUnsent(_ difference: Int, at place: Int) -> Int {
    accounts[place: place].unsentBytes += difference
    return accounts[place: place].unsentBytes
  }

  /// Count bytes that wait for the end of their frame, or have got it. Returns how many there are.
  @discardableResult
  mutating func countPartial(_ difference: Int, at place: Int) -> Int {
    accounts[place: place].partialBytes += difference
    return accounts[place: place].partialBytes
  }

  // MARK: Rates

  /// Take from a user's rate of actions. Returns false when it is used up.
  @inline(__always)
  mutating func takeAction(at place: Int, _ now: Instant) -> Bool {
    accounts[place: place].actions.take(at: now)
  }

  /// Whether the log is to be told of a denial: once a second for each user, as a denial is cheap to
  /// provoke.
  mutating func takeDenial(of uid: UInt64, _ now: Instant) -> Bool {
    accounts.place(of: uid).map { accounts[place: $0].denials.take(at: now) } ?? false
  }

  // MARK: Shares of a turn

  /// Charge a user for bytes of this turn, where others are connected. Returns whether its share is
  /// used up.
  @inline(__always)
  mutating func charge(_ bytes: Int, at place: Int) -> Bool {
    guard isCrowded else { return false }
    isSharing = true
    accounts[place: place].turnBytes += bytes
    return accounts[place: place].turnBytes > limits.turnBytesPerUser
  }

  /// Have a connection of a user wait until it is its turn to be read from.
  mutating func wait(_ id: ConnectionID, of uid: UInt64) { accounts[uid]?.waiting.append(id) }

  /// What a user may do in the turn that begins.
  enum Share {
    /// Its actions did much more than a share: it waits for another turn.
    case debt
    /// These connections are read from again; whether more of them wait.
    case resumed([ConnectionID], moreWait: Bool)
  }

  /// Begin a turn in which each user has a share again, and say what each may do.
  mutating func beginTurn() -> [(uid: UInt64, share: Share)] {
    guard isSharing else { return [] }
    isSharing = false
    var shares: [(uid: UInt64, share: Share)] = []
    for uid in accounts.keys.sorted() {
      guard let place = accounts.place(of: uid) else { continue }
      let debt = accounts[place: place].turnBytes - limits.turnBytesPerUser
      // What one read brings beyond the share is forgiven.
      let isInDebt = isCrowded && debt > 4 * limits.turnBytesPerUser
      accounts[place: place].turnBytes = isInDebt ? debt : 0
      if isInDebt {
        shares.append((uid, .debt))
        isSharing = true
        continue
      }
      let count = accounts[place: place].waiting.count
      guard count > 0 else { continue }
      // As many as use up the share if each of them brings a whole buffer; alone, all.
      let most = isCrowded ? max(1, limits.turnBytesPerUser >> 16) : count
      let resumed = Array(accounts[place: place].waiting.prefix(most))
      accounts[place: place].waiting.removeFirst(resumed.count)
      shares.append((uid, .resumed(resumed, moreWait: count > most)))
      if count > most { isSharing = true }
    }
    return shares
  }

  // MARK: Lines of those who ask

  /// Whether a connection waits for its turn to be answered.
  var isAsking: Bool { !askers.isEmpty }

  /// Put a connection that has asked something into its user's line.
  mutating func lineUp(_ id: ConnectionID, of uid: UInt64, at place: Int) {
    if accounts[place: place].asking.isEmpty { askers.append(uid) }
    accounts[place: place].asking.append(id)
  }

  /// Divide the turn's work on requests: users take turns, and so do the connections of each.
  mutating func grant(_ work: Int) {
    overrunLeft = work
    let share = work / max(1, askers.count)
    for place in askers.compactMap({ accounts.place(of: $0) }) {
      accounts[place: place].grant = max(
        Self.leastGrant, share / max(1, accounts[place: place].asking.count))
    }
  }

  private static var leastGrant: Int { 250 }

  /// Take the next connection to be answered from its line, with what it is granted. It may have
  /// ended since.
  mutating func nextAsking() -> (id: ConnectionID, grant: Int)? {
    while !askers.isEmpty {
      let uid = askers.removeFirst()
      guard let place = accounts.place(of: uid), !accounts[place: place].asking.isEmpty else {
        continue
      }
      let id = accounts[place: place].asking.removeFirst()
      if !accounts[place: place].asking.isEmpty { askers.append(uid) }
      return (id, accounts[place: place].grant)
    }
    return nil
  }

  /// Note that answers were larger than their grant.
  mutating func noteOverrun(_ work: Int) { overrunLeft -= work }
}
