import Access
import Lockstep
import Records
import Values
import Wire

// Digests of the state: for clients that compare theirs, for reports, and for the journal (`Digests`).
extension Server {
  /// Whether so little has changed that the digest of the state may be computed on the loop. If not, it is
  /// computed beside it, and its end is an event.
  mutating func isDigestAtHand(_ commands: inout [Command]) -> Bool {
    if isDigestShort { return true }
    if digests.begin(at: counters.changedBytes) { commands.append(.computeDigest) }
    return false
  }

  /// Whether so little has changed that the digest of the state takes about a millisecond.
  var isDigestShort: Bool {
    @inline(__always) get {
      digests.changed(at: counters.changedBytes) <= limits.inlineDifferenceBytes
    }
  }

  /// Whether a connection's next request has to wait until a digest has been computed.
  mutating func mustWaitForDigest(
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Bool {
    guard let subject = connection.requests.nextDigest, needsDigest(of: subject, connection),
      !isDigestAtHand(&commands), connection.requests.waitForDigest()
    else { return false }
    digests.wait(connection.id)
    return true
  }

  /// Whether what is asked for is the digest of a large part of the state that changes.
  private mutating func needsDigest(
    of subject: RequestQueue.DigestSubject, _ connection: borrowing ServerSession
  ) -> Bool {
    switch subject {
    case .status: return connection.rights.seesAll
    case .subscription(let number):
      guard let index = connection.subscriptions.index(ofNumber: number),
        connection.subscriptions[index].progress.isLive,
        let scope = publication.scopes.index(of: connection.subscriptions[index].scope),
        publication.scopes[index: scope].filter == nil
      else { return false }
      return !isSmall(scope)
    }
  }

  /// Whether a scope is known to have so little that its digest takes about a millisecond.
  private func isSmall(_ scope: Int) -> Bool {
    publication.scopes[index: scope].wholeBytes.map { $0 <= limits.inlineDifferenceBytes } ?? false
  }

  /// A digest has been computed beside the loop: answer the requests that wait for it.
  mutating func digestComputed() {
    for id in digests.end() {
      guard let place = connections.place(of: id) else { continue }
      connections[place: place].requests.isWaitingForDigest = false
      lineUp(place)
    }
  }

  /// Send the digest of a subscription. One that is not current has none now, because its stream is
  /// not at the revision for which the digest would hold. Returns the work that it took.
  mutating func answerDigest(_ number: UInt64, _ connection: inout ServerSession) -> Int {
    var digest: Digest?
    var work = 20
    if let index = connection.subscriptions.index(ofNumber: number),
      connection.subscriptions[index].progress.isLive,
      let scope = publication.scopes.index(of: connection.subscriptions[index].scope),
      publication.scopes[index: scope].filter != nil || isDigestShort || isSmall(scope)
    {
      digest = self.digest(of: publication.scopes[index: scope])
      // The digest of a filtered part requires encoding everything visible in it.
      if publication.scopes[index: scope].filter != nil {
        work += (publication.scopes[index: scope].snapshotBytes ?? limits.inlineSnapshotBytes) / 64
      }
    }
    // Version 1 of the protocol cannot say that there is none.
    if digest == nil && connection.client.version < 2 { return work }
    connection.send(.digest(subscription: number, revision: core.revision, digest))
    return work
  }

  /// The digest that the batch of a turn is to have for the journal: of the state without its ephemeral
  /// fields. Nil if none is due, or until so much as has changed has been computed. Where each turn changes
  /// much, more of it is done on the loop in the end.
  mutating func keptDigest(_ commands: inout [Command]) -> Digest? {
    guard journaling.wantsDigest(every: limits.journalDigestChanges) else { return nil }
    if !isDigestAtHand(&commands) {
      let changed = digests.changed(at: counters.changedBytes)
      guard digests.tries > 3, changed <= 16 * limits.inlineDifferenceBytes else { return nil }
    }
    digests.noteKept()
    var state = core.state
    if !journaling.ephemeral.isEmpty { EphemeralFields.reset(&state) }
    return Digest(state.digest(seed: core.seed))
  }
}
