import Access
import CBOR
import Lockstep
import Values
import Wire

// The rights of a connection are determined when it opens, and again when the policy is replaced. A
// nil `ServerSession.rights` means that no action or path needs a check, and a nil `filter` of a
// scope that no byte does: clients that may do everything cost no more than these two tests.
extension Server {
  // MARK: Connecting

  /// The rights of a peer, nil for everything, and the goodbye if it may not even connect.
  mutating func admission(of peer: Peer) -> (rights: Rights?, denial: Goodbye?) {
    guard let rights = authority.rights(of: peer) else { return (nil, nil) }
    guard !rights.mayConnect else { return (rights.isUnrestricted ? nil : rights, nil) }
    // It may ask for a reload of the policy, and do nothing else.
    if authority.isOwner(peer) { return (Rights.none, nil) }
    return (rights, Goodbye(.denied, admissionDenial(of: peer)))
  }

  /// The text that says why a peer may not connect, and who can change that.
  private func admissionDenial(of peer: Peer) -> String {
    let denial = "the daemon's policy does not let user \(peer.uid) connect"
    return switch authority.policy?.source {
    case .standard(let owner)?:
      denial + ": it has no policy file (--policy), so only user \(owner) and root may"
    case .file?:
      denial + ": its administrator can let the user, or a group of theirs, in the policy file"
    case .program?, nil: denial
    }
  }

  // MARK: Seeing

  /// The visible part of a path.
  enum Sight {
    case nothing
    /// Everything that the filter passes; all, if it is nil.
    case shown(ViewFilter?)
  }

  func sight(of path: Path, with rights: Rights?) -> Sight {
    guard let rights else { return .shown(nil) }
    guard let filter = rights.view.filter(at: path, in: schema) else { return .nothing }
    return .shown(filter.isEverything ? nil : filter)
  }

  /// The index of the scope of a path and a view of it, which is added if there is none.
  mutating func scope(of path: Path, by filter: ViewFilter?) -> Int {
    publication.scopes.index(of: path, by: filter)
      ?? publication.scopes.add(
        path, by: filter, lastChange: core.revision, isPresent: core.state.isPresent(at: path))
  }

  /// The digest of the visible part of a scope; nil if a mirror could not have it, or if computing
  /// it would take long.
  func digest(of scope: borrowing Scope) -> Digest? {
    guard let filter = scope.filter else {
      return Digest(core.state.digest(at: scope.path, seed: core.seed))
    }
    let kind = schema.kind(at: scope.path)
    guard let size = scope.wholeBytes, size <= limits.inlineSnapshotBytes,
      !filter.hidesFields(of: kind, in: schema)
    else { return nil }
    var encoder = CBOREncoder()
    core.state.encode(at: scope.path, into: &encoder)
    return filter.shown(encoder.bytes).withUnsafeBytes {
      try? Digest(ofValueForm: $0, of: kind, in: schema, seed: core.seed)
    }
  }

  // MARK: Acting

  /// The rejection of an action that the client at `place` has no right to; nil if it has. A client
  /// that administers the daemon is told which rule denies it; others only which right they lack.
  mutating func denial(
    of action: R.Action, at place: Int, _ commands: inout [Command]
  ) -> Rejection? {
    guard let rights = connections[place: place].rights,
      let right = missingRight(for: action, rights)
    else { return nil }
    var rejection = rights.refusal(of: action, without: right)
    let connection = connections[place: place]
    let explanation = logDenial(of: right, "action denied", connection, &commands)
    if rights.mayAdminister {
      let why = explanation ?? self.explanation(of: right, for: connection.peer)
      rejection = Rejection(rejection.code, "\(rejection.message): \(why)", at: rejection.path)
    }
    return rejection
  }

  /// The first right that is missing for an action. Of a large one that is known: there may be many
  /// paths to compare with many patterns.
  private func missingRight(for action: R.Action, _ rights: Rights) -> MissingRight? {
    if let right = turn.missingRight, rights.lacks(right, in: core.state) { return right }
    if let foreseen = turn.foreseen, foreseen.rights == rights { return nil }
    return rights.missingRight(for: action, in: core.state)
  }

  /// Log a denial with its explanation, rate limited to once a second for each user, because a
  /// denial is cheap to provoke. Returns the explanation, if it was made.
  @discardableResult
  mutating func logDenial(
    of right: MissingRight, _ what: String, _ connection: ServerSession,
    _ commands: inout [Command]
  ) -> String? {
    guard users.takeDenial(of: connection.peer.uid, clock.now) else { return nil }
    let explanation = explanation(of: right, for: connection.peer)
    let fields: [LogLine.Field] = [
      .init("right", "\(right)".onOneLine), .init("because", explanation.onOneLine),
    ]
    commands.append(.log(LogLine(.notice, what, connection.logFields + fields)))
    return explanation
  }

  /// The rule that denies a right to a peer. O(the patterns of the rules that are about it).
  private func explanation(of right: MissingRight, for peer: Peer) -> String {
    authority.policy?.explanation(of: right, uid: peer.uid, gid: peer.gid, groups: peer.groups)
      ?? ""
  }

  /// A rejection without the parts that the client at `place` may not see.
  func redacted(_ rejection: Rejection, at place: Int) -> Rejection {
    connections[place: place].rights?.redacted(rejection, in: core.state) ?? rejection
  }

  // MARK: Asking

  /// The error for a query that a client may not make; nil if it may.
  func reportDenial(of name: String, to rights: Rights?) -> ReportError? {
    guard let rights, !rights.mayAdminister, ReportName(rawValue: name)?.isForEveryone != true
    else {
      return nil
    }
    return Self.reportDenial(of: name.prefix(bytes: limits.textBytes))
  }

  private static func reportDenial(of name: String) -> ReportError {
    let others = ReportName.list(where: \.isForEveryone).joined(separator: ", ")
    return ReportError(
      .denied,
      "the daemon's policy does not let you ask for \"\(name)\": all reports but \(others) "
        + "need the right to administer")
  }

  /// End the query of a connection that follows the log, if it may not any more.
  mutating func ceaseFollowing(_ place: Int) {
    guard connections[place: place].queries.following != nil,
      let rights = connections[place: place].rights, !rights.mayAdminister
    else { return }
    connections[place: place].queries.revokeFollowing()
    connections.unfollow(connections[place: place].id)
  }

  /// Pass on the shell's answer, if the connection still exists.
  mutating func answered(
    _ id: ConnectionID, _ query: UInt64, _ finding: Finding, _ commands: inout [Command]
  ) {
    let jump = jumping.take(id, query)
    // Each may be the last that has what the other has not.
    if let jump { turn.remains.add(jump) }
    if case .change(let change) = finding { turn.remains.add(change) }
    guard let place = connections.place(of: id) else { return }
    var answer: [UInt8]
    // A jump that the policy does not permit any more has been refused.
    if let jump, connections[place: place].queries.awaits(query) {
      let peer = (connections[place: place].peer.uid, connections[place: place].rights)
      guard let report = finish(jump, finding, for: peer, &commands) else { return }
      answer = report
    } else if case .report(let report) = finding {
      answer = report
    } else {
      answer = ReportError(.refused, "the jump has been given up").report.encoded
    }
    if connections[place: place].isBlocked, answer.count > limits.reportPageBytes {
      // It would wait here for as long as the client does not read.
      let error = ReportError(.refused, "the report is large, and you did not read: ask again")
      answer = error.report.encoded
    }
    guard connections[place: place].queries.answer(query, answer) else { return }
    connections.touch(id, at: place)
  }

  // MARK: Another policy

  /// Replace the policy, and reconsider every connection.
  mutating func rule(by policy: Policy, _ commands: inout [Command]) {
    guard policy != authority.policy else { return authority.restate(policy) }
    authority.replace(by: policy, at: core.revision)
    for id in connections.idsInOrder { reconsider(id, &commands) }
  }

  private mutating func reconsider(_ id: ConnectionID, _ commands: inout [Command]) {
    guard let place = connections.place(of: id) else { return }
    switch connections[place: place].phase {
    case .left, .vacant: return
    // It may have lost the right to what is due to it.
    case .leaving:
      connections[place: place].queries.revokeInspection()
      return revokeSubscriptions(place)
    case .awaitingHello, .live, .parting: break
    }
    let former = connections[place: place].rights
    let (rights, denial) = admission(of: connections[place: place].peer)
    connections[place: place].rights = rights
    if let denial {
      logDenial(of: .connect, "client denied", connections[place: place], &commands)
      connections[place: place].queries.revokeInspection()
      revokeSubscriptions(place)
      return leave(id, denial)
    }
    guard rights != former else { return }
    ceaseFollowing(place)
    connections[place: place].queries.revokeInspection()
    var index = 0
    while index < connections[place: place].subscriptions.count {
      if look(again: index, place) { index += 1 }
    }
    connections.touch(id, at: place)
  }

  /// End all subscriptions of a connection, because it may see nothing any more.
  private mutating func revokeSubscriptions(_ place: Int) {
    depart(connections[place: place].subscriptions.revokeAll(), place)
  }

  /// Move a subscription to the scope that its connection may see now. Returns false if there is
  /// none, and the subscription has ended.
  private mutating func look(again index: Int, _ place: Int) -> Bool {
    let subscription = connections[place: place].subscriptions[index]
    guard let old = publication.scopes.index(of: subscription.scope) else { return true }
    let path = publication.scopes[index: old].path
    switch sight(of: path, with: connections[place: place].rights) {
    case .nothing:
      end(connections[place: place].subscriptions.remove(at: index), of: connections[place: place])
      connections[place: place].subscriptions.revoke(subscription.number)
      return false
    case .shown(let filter):
      guard filter != publication.scopes[index: old].filter else { return true }
      drop(subscription, uid: connections[place: place].peer.uid)
      let scope = scope(of: path, by: filter)
      var new = Subscription(
        number: subscription.number, scope: publication.scopes[index: scope].id,
        progress: .lost(.view), isTrusted: true)
      new.seat = publication.scopes[index: scope].subscribers.append(
        ConnectionPlace(id: connections[place: place].id, place: place), slot: index)
      connections[place: place].subscriptions.replace(at: index, by: new)
      return true
    }
  }

  /// Tell a client which of its subscriptions and queries have ended because it may not see them,
  /// and send the shell's answers.
  ///
  /// It mutates nothing of the server, but is called for each connection that is sent something: a
  /// method that is not mutating gets a copy of a struct as large as this.
  mutating func sayRevoked(_ connection: inout ServerSession) {
    for number in connection.subscriptions.takeRevoked() { refuse(number, .denied, &connection) }
    for number in connection.queries.takeRevoked() {
      send(Self.reportDenial(of: ReportName.followLog.rawValue), of: number, &connection)
    }
    for answer in connection.queries.takeAnswers() {
      sendReport(answer.query, answer.report, &connection)
    }
  }
}

extension String {
  /// The beginning of the text on one line, for a log: keys may hold any characters, and many.
  fileprivate var onOneLine: String {
    String(unicodeScalars.prefix(256).map { $0.value < 32 ? " " : Character($0) })
  }
}
