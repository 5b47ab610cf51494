import Access
import CBOR
import Lockstep
import Values
import Wire

// A jump makes the next revision with the contents of a former one. The shell finds beside the loop how
// the state must change for that, which takes as long as any look into the past, and changes a copy; the
// loop makes the revision. So no action waits, and those that come meanwhile are taken back as well: then
// a small change is worked out again on the loop, a large one beside it.
//
// Everything that is not contents stays: the outcomes of actions, and ephemeral fields. The effects of
// children that are gone end.
extension Server {
  /// The jump that a client asks for. Throws if it may not be, or leads nowhere.
  func jump(
    _ request: JumpRequest, _ query: UInt64, _ connection: borrowing ServerSession
  ) throws(ReportError) -> PendingJump<R.State> {
    guard mayJump(connection.rights) else {
      throw ReportError(
        .denied, "this may change everything: it is for those who may do everything")
    }
    if let other = jumping.pending, connections.place(of: other.connection) != nil {
      throw ReportError(.refused, "the daemon is at another jump: ask again")
    }
    let (target, place) = try target(of: request)
    guard past.checkpoint(for: target, in: publication.history) != nil else { throw absenceOfPast }
    return PendingJump(
      connection: connection.id, query: query, request: request, target: target, place: place,
      base: base)
  }

  private var base: PendingJump<R.State>.Base {
    .init(state: core.state, revision: core.revision, changedBytes: counters.changedBytes)
  }

  func mayJump(_ rights: Rights?) -> Bool { rights?.isUnrestricted ?? true }

  /// The revision to whose contents a request leads.
  private func target(
    of request: JumpRequest
  ) throws(ReportError) -> (revision: UInt64, place: UndoLine.Place?) {
    if case .jump(let revision) = request {
      guard revision <= core.revision else {
        throw ReportError(.absent, "the newest revision is \(core.revision)")
      }
      return (revision, nil)
    }
    guard let oldest = oldestRevision else { throw absenceOfPast }
    let here = jumping.line.place(at: core.revision, isUndoable)
    let found: (place: UndoLine.Place, revision: UInt64)?
    switch request {
    case .undo(let count):
      found = jumping.line.undoing(count, from: here, oldest: oldest, isUndoable)
    case .redo(let count): found = jumping.line.redoing(count, from: here, oldest: oldest)
    case .jump: found = nil
    }
    if let found { return (found.revision, found.place) }
    if case .redo(let count) = request {
      throw ReportError(
        .absent,
        count <= here.undone.count
          ? "that change is forgotten: the past begins with revision \(oldest)"
          : "there are not so many changes to redo: \(here.undone.count) have been undone since "
            + "anything else changed the state")
    }
    var text = "there are not so many changes to undo: the past begins with revision \(oldest)"
    if !journaling.ephemeral.isEmpty {
      text +=
        ", and no more than \(UndoLine.mostRevisions) revisions are looked at that changed only "
        + "what is not kept"
    }
    throw ReportError(.absent, text)
  }

  /// Whether a revision changed what a jump would change back: not only ephemeral fields.
  private func isUndoable(_ revision: UInt64) -> Bool {
    guard let patch = publication.history.patch(of: revision) else { return false }
    if journaling.ephemeral.isEmpty { return true }
    var kept: [UInt8] = []
    return patch.withUnsafeBytes { journaling.ephemeral.appendKept(of: $0, to: &kept) }
  }

  /// Make the revision of a jump, of which the shell has found the change. Returns the report; nil if
  /// the shell is to find it again.
  mutating func finish(
    _ jump: PendingJump<R.State>, _ finding: Finding, for peer: (uid: UInt64, rights: Rights?),
    _ commands: inout [Command]
  ) -> [UInt8]? {
    do throws(ReportError) {
      var found: FoundChange
      switch finding {
      case .change(let change): found = change
      case .report(let report):
        // Of a recording, which does not have the state.
        guard let patch = FoundChange.patch(in: report) else { return report }
        found = try change(patch, of: jump.base.state)
      }
      guard mayJump(peer.rights) else {
        throw ReportError(.denied, "the policy has changed meanwhile")
      }
      let isOvertaken =
        !publication.history.covers(jump.base.revision)
        || jump.base.revision < core.revision
          && (jump.base.revision + 1...core.revision).contains(where: isUndoable)
      if jump.place != nil, isOvertaken {
        throw ReportError(
          .refused,
          "the state has changed meanwhile, and that would be undone as well: pause first, or ask "
            + "again")
      }
      if jump.base.revision < core.revision, !faults.jumpsFromLate {
        guard let now = try small(found, behind: jump.base) else {
          return try find(jump, again: peer.uid, &commands)
        }
        found = now
      }
      try make(jump, found)
    } catch {
      return error.report.encoded
    }
    // Of the jump, not of what follows from it.
    let revision = core.revision
    if core.hasWaiting { runWaiting() }
    var encoder = CBOREncoder()
    encoder.map(2)
    encoder.encode("revision")
    encoder.encode(revision)
    encoder.encode("of")
    encoder.encode(jump.contents)
    return encoder.bytes
  }

  /// The change that a found one is now that others have come before it: what is not changed back is as
  /// it is now, not as it was when the jump was asked for. Nil if it may take long to work that out.
  ///
  /// What others did is bounded by its bytes. If they removed much with few, the loop encodes that once.
  private func small(
    _ found: FoundChange, behind base: PendingJump<R.State>.Base
  ) throws(ReportError) -> FoundChange? {
    let most = limits.inlineDifferenceBytes
    guard found.bytes.count + (counters.changedBytes &- base.changedBytes) <= most,
      let state = found.state as? R.State
    else { return nil }
    var difference = CBOREncoder()
    _ = state.encodeDifference(from: core.state, into: &difference)
    return difference.bytes.count <= most ? try change(difference.bytes, of: core.state) : nil
  }

  /// Have the shell find the change anew.
  private mutating func find(
    _ jump: PendingJump<R.State>, again uid: UInt64, _ commands: inout [Command]
  ) throws(ReportError) -> [UInt8]? {
    guard let again = jump.again(on: base) else {
      throw ReportError(
        .refused,
        "the change is large, and the state changed each time that it was worked out: pause first")
    }
    jumping.pending = again
    let query = ShellQuery.past(PastRequest(change: jump.target), uid: uid)
    commands.append(.answer(jump.connection, query: jump.query, query))
    return nil
  }

  private mutating func make(
    _ jump: PendingJump<R.State>, _ found: FoundChange
  ) throws(ReportError) {
    let found = faults.jumpsFromLate ? try change(found.bytes, of: core.state) : found
    guard let new = found.state as? R.State else {
      // Not reached: it was made of one.
      throw ReportError(.refused, "the change is of another state")
    }
    turn.clearPatch()
    turn.patch.bytes = found.bytes
    turn.foreseen = found.patch
    defer { turn.foreseen = nil }
    let cause = connections.place(of: jump.connection).map { connections[place: $0].client.cause }
    note(
      core.replaceState(
        by: new, isOther: !found.bytes.isEmpty, from: cause ?? .owner,
        named: jump.request.name(jump.contents)))
    if let place = jump.place, !faults.undoesUndoing {
      jumping.line.note(place, at: core.revision, oldest: oldestRevision ?? core.revision)
    }
  }

  private func change(_ patch: [UInt8], of state: R.State) throws(ReportError) -> FoundChange {
    do throws(CBORError) {
      return try FoundChange(patch, of: state, without: journaling.ephemeral, seed: core.seed)
    } catch {
      throw PastJob.failure(error)
    }
  }
}
