public import CBOR
import Values

extension ServerMessage {
  /// Append the message, without a frame.
  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .welcome(let welcome):
      encoder.beginMessage(.welcome, extra: welcome.session == nil ? 0 : 1)
      welcome.encodeFields(into: &encoder)
    case .subscribed(let subscribed):
      encoder.beginMessage(.subscribed)
      encoder.encode(subscribed.subscription)
      encoder.encode(subscribed.scope)
      encoder.encode(subscribed.continuation.rawValue)
      encoder.encode(subscribed.reason.rawValue)
      encoder.encode(subscribed.revision)
    case .snapshot(let snapshot):
      Self.encodeSnapshot(
        scope: snapshot.scope, revision: snapshot.revision, index: snapshot.index,
        isLast: snapshot.isLast, snapshot.bytes, into: &encoder)
    case .patch(let scope, let from, let patches):
      Self.beginPatches(patches.count, scope: scope, from: from, into: &encoder)
      for patch in patches {
        encoder.encode(patch.span)
        encoder.raw(patch.patch)
      }
    case .acknowledgement(let acknowledgement):
      encoder.beginMessage(.acknowledgement, extra: acknowledgement.extraFields)
      acknowledgement.encodeFields(into: &encoder)
    case .pong(let value, let revision):
      encoder.beginMessage(.pong)
      encoder.encode(value)
      encoder.encode(revision)
    case .bookmark(let revision, let durable):
      encoder.beginMessage(.bookmark)
      encoder.encode(revision)
      encoder.encodeOptional(durable) { $0.encode($1) }
    case .digest(let subscription, let revision, let digest):
      encoder.beginMessage(.digest)
      encoder.encode(subscription)
      encoder.encode(revision)
      encoder.encodeOptional(digest?.rawValue) { $0.encode($1) }
    case .schema(let schema):
      encoder.beginMessage(.schema)
      schema.encode(into: &encoder)
    case .report(let number, let value, let hasMore):
      encoder.beginMessage(.report, extra: hasMore ? 1 : 0)
      encoder.encode(number)
      value.encode(into: &encoder)
      if hasMore { encoder.encode(true) }
    case .goodbye(let goodbye):
      encoder.beginMessage(.goodbye)
      encoder.encode(goodbye.code.rawValue)
      encoder.encode(goodbye.message)
      encoder.encodeOptional(goodbye.limit?.name) { $0.encode($1) }
      encoder.encodeOptional(goodbye.limit?.limit) { $0.encode($1) }
      encoder.encodeOptional(goodbye.limit?.observed) { $0.encode($1) }
      encoder.encodeOptional(goodbye.retryAfter) { $0.encode($1) }
    case .restarting(let retryAfter):
      encoder.beginMessage(.restarting)
      encoder.encode(retryAfter)
    case .restarted(let position):
      encoder.beginMessage(.restarted)
      position.encode(into: &encoder)
    case .decided(let last, let revision):
      encoder.beginMessage(.decided)
      encoder.encode(last)
      encoder.encode(revision)
    }
  }
}

// The messages that carry a state. A daemon has their contents in bytes already (`StreamFrames`).
extension ServerMessage {
  /// Append a part of a snapshot, without a frame.
  @inlinable
  package static func encodeSnapshot(
    scope: UInt64, revision: UInt64, index: UInt64, isLast: Bool, _ bytes: some Collection<UInt8>,
    into encoder: inout CBOREncoder
  ) {
    encoder.beginMessage(.snapshot)
    encoder.encode(scope)
    encoder.encode(revision)
    encoder.encode(index)
    encoder.encode(isLast)
    encoder.head(.bytes, UInt64(bytes.count))
    encoder.raw(bytes)
  }

  /// Append the beginning of a message of patches, without a frame. `count` spans follow, each with
  /// its patch behind it.
  @inlinable
  package static func beginPatches(
    _ count: Int, scope: UInt64, from: UInt64, into encoder: inout CBOREncoder
  ) {
    encoder.beginMessage(.patch, extra: 2 * count - 2)
    encoder.encode(scope)
    encoder.encode(from)
  }
}

extension ServerMessage {
  /// Append the beginning of a frame of patches, in one piece. `count` spans follow, each with its patch
  /// behind it: so many bytes.
  package static func beginFrame(
    ofPatches count: Int, scope: UInt64, from: UInt64, before bytes: Int,
    into encoder: inout CBOREncoder
  ) {
    let isDone = encoder.append(short: { items in
      items.leaveRoomForWord()
      let type = MessageType.patch
      items.head(.array, UInt64(truncatingIfNeeded: 1 + type.fieldCount + 2 * count - 2))
      items.head(.unsigned, type.rawValue)
      items.head(.unsigned, scope)
      items.head(.unsigned, from)
      items.putLengthFirst(behind: bytes)
    })
    precondition(isDone, "A frame's length has 32 bits.")
  }
}

extension ServerMessage.Welcome {
  fileprivate func encodeFields(into encoder: inout CBOREncoder) {
    encoder.encode(version)
    position.encode(into: &encoder)
    encoder.encode(seed.rawValue)
    token.encode(into: &encoder)
    encoder.encode(isResumed)
    encoder.encode(lastAction)
    encoder.encode(window)
    encoder.map(limits.count)
    for limit in limits {
      encoder.encode(limit.name)
      encoder.encode(limit.value)
    }
    encoder.encodeOptional(schema) { $1.encode(into: &$0) }
    encoder.array(3)
    encoder.encode(peer.pid)
    encoder.encode(peer.uid)
    encoder.encode(peer.gid)
    encoder.encodeOptional(durable) { $0.encode($1) }
    // This field was added later: without it the message has its first form.
    if let session { encoder.encode(session) }
  }
}

extension Acknowledgement {
  fileprivate func encodeFields(into encoder: inout CBOREncoder) {
    encoder.encode(first)
    encoder.encode(last)
    encoder.encode(revision)
    encoder.encode(mark.rawValue)
    encoder.encode(outcome.number)
    if case .rejected(let rejection) = outcome {
      encoder.array(3)
      encoder.encode(rejection.code)
      encoder.encode(rejection.message)
      encoder.encodeOptional(rejection.path) { $1.encode(into: &$0) }
    } else {
      encoder.encodeNull()
    }
    // These fields were added later: without them the message has its first form.
    if extraFields > 0 { encoder.encodeOptional(notDurable) { $0.encode($1) } }
    if let sequence { encoder.encode(sequence) }
  }

  fileprivate var extraFields: Int { sequence != nil ? 2 : notDurable != nil ? 1 : 0 }
}

extension Acknowledgement {
  /// Append the frame of the acknowledgement's message: nearly all of them in one piece.
  package func appendFrame(to encoder: inout CBOREncoder) {
    if case .rejected = outcome {
    } else if notDurable == nil, encoder.append(short: encodeFrame) {
      return
    }
    Frame.append(to: &encoder) { ServerMessage.acknowledgement(self).encode(into: &$0) }
  }

  /// The frame of one that has no texts: as `ServerMessage.encode` does it.
  private func encodeFrame(_ items: inout ShortItems) {
    items.leaveRoomForWord()
    let type = MessageType.acknowledgement
    items.head(.array, UInt64(truncatingIfNeeded: 1 + type.fieldCount + extraFields))
    items.head(.unsigned, type.rawValue)
    items.head(.unsigned, first)
    items.head(.unsigned, last)
    items.head(.unsigned, revision)
    items.head(.unsigned, mark.rawValue)
    items.head(.unsigned, outcome.number)
    items.encodeNull()
    if let sequence {
      items.encodeNull()
      items.head(.unsigned, sequence)
    }
    items.putLengthFirst()
  }
}

extension Acknowledgement.Outcome {
  var number: UInt64 {
    switch self {
    case .reduced: 0
    case .unchanged: 1
    case .swallowed: 2
    case .accepted: 3
    case .rejected: 4
    case .outcomeUnknown: 5
    }
  }
}
