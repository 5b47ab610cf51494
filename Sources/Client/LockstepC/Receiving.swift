public import CLockstep
import ClientCore
import Values
import Wire

// Events, and subscriptions.

@c @implementation
public func lockstep_next_event(
  _ connection: OpaquePointer!, _ event: UnsafeMutablePointer<lockstep_event>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard let event else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    connection.releaseEvent()
    guard let (next, places) = connection.events.removeFirst() else { return 0 }
    var filled = lockstep_event()
    filled.retry_after_ms = -1
    connection.fill(&filled, with: next, places)
    event.pointee = filled
    return 1
  }
}

extension ClientConnection {
  fileprivate func fill(
    _ event: inout lockstep_event, with next: EventQueue.Event, _ places: ChangedPlaces
  ) {
    switch next {
    case .state(let state):
      event.kind = Int32(LOCKSTEP_EVENT_STATE.rawValue)
      event.state = Int32(state.number.rawValue)
      if let goodbye = state.goodbye { fill(&event, with: goodbye) }
    case .changed(let subscription):
      event.kind = Int32(LOCKSTEP_EVENT_CHANGED.rawValue)
      event.subscription = subscription
      event.revision = session.position(of: subscription)?.revision ?? 0
      eventPlaces = places.pointers.sorted().map { (eventTexts.copy($0), $0.utf8.count) }
      event.place_count = eventPlaces.count
    case .outcome(let actions, let acknowledgement):
      event.kind = Int32(LOCKSTEP_EVENT_OUTCOME.rawValue)
      event.action = actions.lowerBound.rawValue
      event.last_action = actions.upperBound.rawValue
      fill(&event, with: acknowledgement)
    case .refused(let subscription, let code, let message):
      event.kind = Int32(LOCKSTEP_EVENT_REFUSED.rawValue)
      event.subscription = subscription
      event.code = code
      event.message = eventTexts.copy(message)
    case .report(let query, let report):
      event.kind = Int32(LOCKSTEP_EVENT_REPORT.rawValue)
      event.query = query
      event.value = values.value(at: values.keep(report))
    }
  }

  private func fill(_ event: inout lockstep_event, with goodbye: Goodbye) {
    event.code = goodbye.code.rawValue
    event.message = eventTexts.copy(goodbye.message)
    event.retry_after_ms = goodbye.retryAfter.map { Int64(clamping: $0) } ?? -1
    guard let breach = goodbye.limit else { return }
    event.limit = eventTexts.copy(breach.name)
    (event.allowed, event.observed) = (breach.limit, breach.observed)
  }

  private func fill(_ event: inout lockstep_event, with acknowledgement: Acknowledgement) {
    event.outcome = Int32(acknowledgement.outcome.number.rawValue)
    event.revision = acknowledgement.revision
    event.is_durable = acknowledgement.mark == .durable ? 1 : 0
    event.sequence = acknowledgement.sequence ?? 0
    if let why = acknowledgement.notDurable { event.message = eventTexts.copy(why) }
    guard case .rejected(let rejection) = acknowledgement.outcome else { return }
    event.code = rejection.code
    event.message = eventTexts.copy(rejection.message)
    if let path = rejection.path { event.path = eventTexts.copy(path.pointer) }
  }
}

extension Acknowledgement.Outcome {
  fileprivate var number: lockstep_outcome {
    switch self {
    case .reduced: LOCKSTEP_OUTCOME_APPLIED
    case .unchanged: LOCKSTEP_OUTCOME_UNCHANGED
    case .swallowed: LOCKSTEP_OUTCOME_SWALLOWED
    case .accepted: LOCKSTEP_OUTCOME_ACCEPTED
    case .rejected: LOCKSTEP_OUTCOME_REJECTED
    case .outcomeUnknown: LOCKSTEP_OUTCOME_UNKNOWN
    }
  }
}

@c @implementation
public func lockstep_place(
  _ connection: OpaquePointer!, _ index: Int, _ length: UnsafeMutablePointer<Int>!
) -> UnsafePointer<CChar>! {
  guard let handle = try? Handle.resolve(connection) else { return nil }
  let places = handle.pointee.connection.eventPlaces
  guard places.indices.contains(index) else { return nil }
  length?.pointee = places[index].length
  return places[index].text
}

// MARK: Subscriptions

/// The most bytes of a path. Daemons take less, and say so.
private let mostPathBytes = 1 << 20

@c @implementation
public func lockstep_subscribe(
  _ connection: OpaquePointer!, _ path: UnsafePointer<CChar>!, _ flags: UInt32,
  _ subscription: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard path != nil, flags & ~LOCKSTEP_PLACES.rawValue == 0 else {
      throw Failure(LOCKSTEP_ERROR_ARGUMENT)
    }
    let path = try Path(c: path)
    guard path.byteCount <= mostPathBytes else { throw Failure(LOCKSTEP_ERROR_LIMIT) }
    if connection.session.hasEnded { throw Failure(LOCKSTEP_ERROR_CLOSED) }
    if let known = connection.session.mirrors.first(where: { $0.path == path }) {
      subscription?.pointee = known.number
      throw Failure(LOCKSTEP_ERROR_DUPLICATE)
    }
    let number = connection.subscribe(
      to: path, notesPlaces: flags & LOCKSTEP_PLACES.rawValue != 0)
    subscription?.pointee = number
    return 0
  }
}

@c @implementation
public func lockstep_unsubscribe(_ connection: OpaquePointer!, _ subscription: UInt64) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard connection.session.mirror(subscription) != nil else {
      throw Failure(LOCKSTEP_ERROR_SUBSCRIPTION)
    }
    connection.unsubscribe(subscription)
    return 0
  }
}

@c @implementation
public func lockstep_get_mirror_info(
  _ connection: OpaquePointer!, _ subscription: UInt64,
  _ info: UnsafeMutablePointer<lockstep_mirror_info>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard let info else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    guard let mirror = connection.session.mirror(subscription) else {
      throw Failure(LOCKSTEP_ERROR_SUBSCRIPTION)
    }
    var facts = lockstep_mirror_info()
    facts.is_live = mirror.isLive && connection.session.isLive ? 1 : 0
    if let position = mirror.position {
      facts.is_complete = 1
      (facts.epoch, facts.run) = (position.epoch, position.run)
      facts.revision = position.revision
    }
    facts.snapshots = mirror.counters.snapshots
    facts.patches = mirror.counters.patches
    facts.bytes = mirror.counters.bytes
    facts.coalesced = mirror.counters.coalesced
    facts.resyncs = mirror.counters.resyncs
    info.pointee = facts
    return 0
  }
}
