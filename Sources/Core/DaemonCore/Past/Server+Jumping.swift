import Access
import CBOR
import Lockstep
import Values
import Wire

// A jump makes the next revision with the contents of a former one. The shell finds beside the loop how
// the state must change for that, which takes as long as any look into the past; the loop makes the
// revision. So no action waits, and those that come meanwhile are taken back as well.
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
      base: core.state, baseRevision: core.revision)
  }

  private func mayJump(_ rights: Rights?) -> Bool { rights?.isUnrestricted ?? true }

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

  /// Make the revision of a jump, of which the shell has found the change. Returns the report.
  mutating func finish(
    _ jump: PendingJump<R.State>, _ found: [UInt8], for rights: Rights?
  ) -> [UInt8] {
    guard let patch = PastJob.change(in: found) else { return found }
    do throws(ReportError) {
      guard mayJump(rights) else { throw ReportError(.denied, "the policy has changed meanwhile") }
      let isOvertaken =
        !publication.history.covers(jump.baseRevision)
        || jump.baseRevision < core.revision
          && (jump.baseRevision + 1...core.revision).contains(where: isUndoable)
      if jump.place != nil, isOvertaken {
        throw ReportError(
          .refused,
          "the state has changed meanwhile, and that would be undone as well: pause first, or ask "
            + "again")
      }
      try make(jump, patch)
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

  private mutating func make(
    _ jump: PendingJump<R.State>, _ patch: [UInt8]
  ) throws(ReportError) {
    var new = try applying(patch, to: faults.jumpsFromLate ? core.state : jump.base)
    if jump.baseRevision < core.revision, !faults.jumpsFromLate {
      // What is not changed back is as it is now, not as it was when the jump was asked for.
      var difference = CBOREncoder()
      _ = new.encodeDifference(from: core.state, into: &difference)
      new = try applying(difference.bytes, to: core.state)
    }
    turn.remains.add(jump.base)
    turn.clearPatch()
    let cause = connections.place(of: jump.connection).map { connections[place: $0].client.cause }
    note(
      core.replaceState(
        by: new, from: cause ?? .owner, named: jump.request.name(jump.contents),
        patch: &turn.patch))
    if let place = jump.place, !faults.undoesUndoing {
      jumping.line.note(place, at: core.revision, oldest: oldestRevision ?? core.revision)
    }
  }

  /// A state with the part of a patch that a jump changes: not ephemeral fields.
  private func applying(_ patch: [UInt8], to state: R.State) throws(ReportError) -> R.State {
    var kept: [UInt8] = []
    guard !patch.isEmpty,
      patch.withUnsafeBytes({ journaling.ephemeral.appendKept(of: $0, to: &kept) })
    else { return state }
    var state = state
    do throws(CBORError) {
      try CBORDecoder.read(kept) { (decoder) throws(CBORError) in
        try state.apply(patch: &decoder, seed: core.seed)
      }
    } catch {
      // Not reached: the patch was made of this state.
      throw ReportError(.refused, "the past cannot be made again: \(error)")
    }
    return state
  }
}
