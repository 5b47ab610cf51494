import CBOR
import Lockstep
import Wire

// Actions that are decoded beside the loop (`LargeActions`).
extension Server {
  /// Read a large action: have it decoded beside the loop, and stop before it until it is.
  mutating func readLargeAction(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ place: Int,
    _ attachment: ServerSession.Attachment, _ commands: inout [Command]
  ) throws(WireError) -> FrameDecoder.Step {
    guard let decoded = largeActions.take(connections[place: place].id) else {
      return stop(before: place)
    }
    turn.known = decoded
    core.recall(decoded?.foreseen?.foresight)
    defer {
      turn.known = nil
      // It may be the last that has what others have removed meanwhile.
      if let foreseen = turn.foreseen { turn.remains.add(foreseen) }
      turn.foreseen = nil
      core.recall(nil)
    }
    return try readAction(head, &decoder, place, attachment, isDecoded: true, &commands)
  }

  /// Stop a connection before an action that is to be decoded beside the loop.
  @inline(never)
  mutating func stop(before place: Int) -> FrameDecoder.Step {
    largeActions.enter(connections[place: place].id, of: connections[place: place].peer.uid)
    return faults.readsBehindLargeActions ? .stopBehind : .stopBefore
  }

  /// Note the memory that the patch takes, which is known if it is the one that was foreseen.
  mutating func noteForeseen() {
    if let foreseen = turn.foreseen, foreseen.isPatch(turn.patch.bytes) {
      memory.note(foreseen.weight)
    } else {
      memory.note(turn.patch.bytes)
    }
  }

  /// Have the large action of the next connection decoded, if none is.
  mutating func decodeLargeActions(_ commands: inout [Command]) {
    if case .handingOver = ending { return }
    if let id = largeActions.next() { commands.append(.decodeAction(id)) }
  }

  /// The large action to decode for a connection; nil if it needs none any more.
  public func action(for id: ConnectionID) -> ActionJob<R>? {
    guard largeActions.isPending(id), let place = connections.place(of: id),
      let item = connections[place: place].frames.heldItem
    else { return nil }
    return ActionJob(
      bytes: connections[place: place].frames.unparsed, item: item, budget: memory.budget,
      memoryLimit: limits.actionMemoryBytes, seed: core.seed, reducer: core.reducer,
      state: core.state)
  }

  /// A large action has been decoded: read on behind it. A connection that is blocked reads on when
  /// it is not any more.
  mutating func actionDecoded(_ id: ConnectionID, _ action: DecodedAction<R.Action>?) {
    guard largeActions.finish(id, action), let place = connections.place(of: id),
      !connections[place: place].isBlocked
    else { return }
    connections.release(id)
  }
}
