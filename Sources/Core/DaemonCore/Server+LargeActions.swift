import Access
import CBOR
import Lockstep
import Records
import Wire

// Actions that are decoded beside the loop (`LargeActions`).
extension Server {
  /// Read a large action: have it decoded beside the loop, and stop before it until it is.
  mutating func readLargeAction(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ place: Int,
    _ attachment: ServerSession.Attachment, _ commands: inout [Command]
  ) throws(WireError) -> FrameDecoder.Step {
    let id = connections[place: place].id
    guard var decoded = largeActions.take(id) else { return stop(before: place) }
    if let foreseen = decoded?.foreseen, !core.recall(foreseen.foresight) {
      if let decoded, decoded.tries < LargeActions<R.Action>.mostTries {
        largeActions.enter(id, again: decoded, at: clock.now)
        return .stopBefore
      }
      if let action = decoded, isOvertakenElsewhere(foreseen, at: place) {
        decoded = action.overtaken
        turn.remains.add(action)
      } else {
        decoded?.foreseen = nil
        turn.remains.add(foreseen)
      }
    }
    largeActions.endReservation(of: id)
    turn.known = decoded
    defer {
      turn.known = nil
      // It may be the last that has what others have removed meanwhile.
      if let foreseen = turn.foreseen { turn.remains.add(foreseen) }
      turn.foreseen = nil
      turn.missingRight = nil
      core.recall(nil)
    }
    return try readAction(head, &decoder, place, attachment, isDecoded: true, &commands)
  }

  /// Whether others have changed what an action touches only where they do not wait for it: where its client
  /// may not write.
  @inline(never)
  private mutating func isOvertakenElsewhere(_ foreseen: ForeseenPatch, at place: Int) -> Bool {
    guard let part = foreseen.reservedPart, foreseen.rights == connections[place: place].rights
    else { return false }
    defer { core.recall(nil) }
    return core.recall(part)
  }

  /// Stop a connection before an action that is to be decoded beside the loop.
  @inline(never)
  mutating func stop(before place: Int) -> FrameDecoder.Step {
    largeActions.enter(connections[place: place].id, of: connections[place: place].peer.uid)
    return faults.readsBehindLargeActions ? .stopBehind : .stopBefore
  }

  /// Whether an action has to wait, because it may change what the large action of another touches.
  @inline(__always)
  func mustWait(_ action: R.Action, at place: Int) -> Bool {
    largeActions.isAnyReserved && mayChangeReserved(action, at: place)
  }

  /// One that will be rejected does not wait for that.
  @inline(never)
  private func mayChangeReserved(_ action: R.Action, at place: Int) -> Bool {
    guard let foresight = largeActions.reserved, !pause.isOn,
      connections[place: place].rights?.missingRight(for: action, in: core.state) == nil
    else { return false }
    return core.mayChange(foresight, by: action)
  }

  /// Stop a connection before an action until that of another has been performed.
  @inline(never)
  mutating func postpone(_ place: Int) -> FrameDecoder.Step {
    largeActions.postpone(connections[place: place].id)
    return .postpone
  }

  /// Note the change of a large action. What is to be known about its patch is known if that is the one
  /// that was foreseen.
  @inline(never)
  mutating func noteForeseen(_ revision: UInt64) {
    guard let foreseen = turn.foreseen, foreseen.isPatch(turn.patch.bytes) else {
      return noteChange(revision)
    }
    memory.note(foreseen.weight)
    publication.note(turn.patch.bytes, foreseen.scopes, revision: revision)
  }

  /// Have the large action of the next connection decoded, if none is, and postponed ones read.
  @inline(__always)
  mutating func decodeLargeActions(_ commands: inout [Command]) {
    if largeActions.areQueued { decodeNext(&commands) }
  }

  @inline(never)
  private mutating func decodeNext(_ commands: inout [Command]) {
    if case .handingOver = ending { return }
    largeActions.endReservation(at: clock.now, unless: isReady)
    for id in largeActions.takePostponed() {
      if let place = connections.place(of: id) { releaseIfPossible(id, at: place) }
    }
    while let id = largeActions.next() {
      guard isReady(id) else {
        if let action = largeActions.remove(id) { turn.remains.add(action) }
        continue
      }
      largeActions.begin(id, at: clock.now)
      return commands.append(.decodeAction(id))
    }
  }

  /// Whether a connection will read its large action once that is decoded.
  private func isReady(_ id: ConnectionID) -> Bool {
    guard let place = connections.place(of: id), !connections[place: place].isBlocked,
      case .live = connections[place: place].phase
    else { return false }
    return true
  }

  /// About how many bytes of memory it takes to decode the large action of a connection and to foresee
  /// it; nil if it need not be decoded any more. How much it replaces or copies is not known before: as
  /// much as there is.
  public func actionMemory(for id: ConnectionID) -> Int? {
    guard largeActions.isPending(id), isReady(id), let place = connections.place(of: id),
      let item = connections[place: place].frames.heldItem
    else { return nil }
    let decoding = ActionJob<R>.memory(of: item.count, limit: limits.actionMemoryBytes)
    return max(decoding, snapshotMemory)
  }

  /// The large action to decode for a connection; nil if it needs none any more. It is noted, as an
  /// action that is reduced is, while it is foreseen: a reducer may end the process there, too.
  public func action(for id: ConnectionID) -> ActionJob<R>? {
    guard largeActions.isPending(id), isReady(id), let place = connections.place(of: id),
      let item = connections[place: place].frames.heldItem
    else { return nil }
    let bytes = connections[place: place].frames.unparsed
    let own = sessionAction(bytes[item], at: place)
    if let own { journaling.noteForeseen(own) }
    return ActionJob(
      bytes: bytes, item: item, known: largeActions.known(id), budget: memory.budget,
      memoryLimit: limits.actionMemoryBytes, seed: core.seed,
      rights: connections[place: place].rights,
      foreseen: own == nil
        ? nil
        : .init(
          reducer: core.reducer, state: core.state, scopes: publication.views))
  }

  /// The action that an item is, if it is to be foreseen: not one that has been done, nor one during
  /// which the process has ended before. So which action ends it is known the second time.
  private func sessionAction(_ item: ArraySlice<UInt8>, at place: Int) -> SessionAction? {
    guard let attachment = connections[place: place].attachment,
      let number = item.withUnsafeBytes({ bytes -> UInt64? in
        var decoder = CBORDecoder(bytes)
        guard let head = try? MessageHead(from: &decoder), head.type == .action else { return nil }
        return (try? ActionHead(from: &decoder))?.number
      }),
      number == sessions[place: attachment.place].outcomes.last + 1
    else { return nil }
    let own = SessionAction(session: attachment.token, number: number)
    return journaling.isSuspect(own) ? nil : own
  }

  /// A large action has been decoded: read on behind it, unless its connection is not ready.
  mutating func actionDecoded(_ id: ConnectionID, _ action: DecodedAction<R.Action>?) {
    journaling.clearForeseen()
    let (isAwaited, unused) = largeActions.finish(
      id, action, isReady: isReady(id), at: clock.now)
    if isAwaited { connections.release(id) }
    // It may take long to release what was foreseen before.
    for action in unused { turn.remains.add(action) }
  }
}
