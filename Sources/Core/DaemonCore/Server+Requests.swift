import CBOR
import Lockstep
import Values
import Wire

// Requests of clients, their shares of a turn, and their answers (`RequestQueue`).
extension Server {
  // MARK: Shares of a turn

  /// Put a connection with requests to answer into its user's queue. One whose subscriptions still lag,
  /// because it was delayed, cannot be answered in this turn.
  mutating func lineUp(_ place: Int) {
    guard !connections[place: place].requests.isInLine, hasQuestions(place),
      !connections[place: place].isBlocked, !connections[place: place].requests.isWaitingForDigest,
      connections[place: place].subscriptions.unannounced == 0,
      connections[place: place].subscriptions.lagging == 0
        || !connections[place: place].flow.isDelayed
    else { return }
    connections[place: place].requests.isInLine = true
    users.lineUp(
      connections[place: place].id, of: connections[place: place].peer.uid,
      at: connections[place: place].account)
  }

  /// Whether a connection has requests to answer. Asked of its parts: a computed property of a session that
  /// is stored gets a copy of it.
  @inline(__always)
  func hasQuestions(_ place: Int) -> Bool {
    if !connections[place: place].requests.isEmpty { return true }
    return connections[place: place].boxedQueries.isFollowingBehind
  }

  /// Share the turn's work on requests: users take turns, and so do the connections of each.
  mutating func grantWork() {
    guard users.isAsking else { return }
    var left = limits.requestWorkPerTurn
    users.grant(left, at: clock.now)
    while left > 0, let (id, most) = users.nextAsking(at: clock.now) {
      guard let place = connections.place(of: id) else { continue }
      connections[place: place].requests.isInLine = false
      let follows = connections[place: place].boxedQueries.isFollowingBehind
      let need = connections[place: place].requests.need + (follows ? RequestQueue.pageWork : 0)
      let grant = min(need, most)
      connections[place: place].requests.grant = grant
      left -= grant
      users.spend(grant, at: connections[place: place].account)
      connections.touch(id, at: place)
    }
  }

  // MARK: Answering

  /// Answer the requests of a connection, within its grant and the turn's.
  mutating func answer(_ connection: inout ServerSession, _ commands: inout [Command]) {
    var left = connection.requests.grant - connection.requests.debt
    let canAnswer = left > 0
    // When answers have exceeded their grants by a whole turn, only requests that are known to be
    // small are answered.
    while left > 0, users.overrunLeft > 0 || connection.requests.isNextSmall {
      let work: Int
      if connection.requests.hasReport {
        work = sendPage(&connection)
      } else if mustWaitForDigest(&connection, &commands) {
        break
      } else if let request = connection.requests.next() {
        work = answer(request, &connection, &commands)
      } else if connection.boxedQueries.isFollowingBehind {
        work = follow(&connection)
      } else {
        break
      }
      left -= work
    }
    // A debt of earlier turns was noted then.
    if canAnswer { users.noteOverrun(max(0, -left)) }
    connection.requests.grant = 0
    connection.requests.debt = max(0, -left)
  }

  /// Answer the requests that are refused: they are not handed over to the next process.
  mutating func answerRefused(_ connection: inout ServerSession, _ commands: inout [Command]) {
    for request in connection.requests.takeRefused() {
      _ = answer(request, &connection, &commands)
    }
  }

  /// Answer one request. Returns the work that it took, in units.
  private mutating func answer(
    _ request: Request, _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Int {
    switch request {
    case .subscribe(let number, let path, let position):
      let (bytes, encoded) = (connection.outbox.byteCount, publication.encodedThisTurn)
      let read = subscribe(number, path, position, &connection, &commands)
      join(number, &connection, &commands)
      let made = max(
        connection.outbox.byteCount - bytes, publication.encodedThisTurn - encoded)
      return request.work + (read + made) / 64
    case .refuse(let number, let reason): refuse(number, reason, &connection)
    case .refuseQuery(let number, let bytes):
      let text =
        "a query may have \(Request.longest(limits)) bytes and \(Request.mostArguments) arguments; "
        + "this one of \(bytes) bytes has more"
      send(ReportError(.limit, text), of: number, &connection)
    case .unsubscribe(let number):
      guard let index = connection.subscriptions.index(ofNumber: number) else { break }
      let subscription = connection.subscriptions.remove(at: index)
      let path = publication.scopes.path(of: subscription.scope)
      end(subscription, of: connection)
      return request.work + Request.pathWork(path)
    case .ping(let value):
      connection.send(.pong(value, revision: core.revision))
    case .digest(let number): return answerDigest(number, &connection)
    case .query(let number, let name, let arguments):
      return answerQuery(number, name, arguments, &connection, &commands)
    }
    return request.work
  }
}
