import CBOR
import Schemas
import Values
public import Wire

extension ClientSession {
  /// Process bytes received from the daemon.
  public mutating func received(
    _ bytes: UnsafeRawBufferPointer, at now: Instant, into commands: inout [Command]
  ) {
    self.now = now
    lastHeard = now
    if hasEnded || isLeaving { return }
    var frames = FrameDecoder(limit: configuration.frameBytes)
    swap(&frames, &self.frames)
    do throws(WireError) {
      try frames.receiveAll(bytes) { item throws(WireError) in try self.read(item, &commands) }
      // The daemon may be configured with a larger limit than the default.
      frames.limit = max(configuration.frameBytes, daemonFrameBytes)
      self.frames = frames
    } catch {
      // The daemon and this client do not understand each other: reconnecting would not help.
      commands.append(.send(Self.frame(.goodbye(error.code, error.message))))
      lastGoodbye = Goodbye(error)
      isLeaving = true
      commands.append(.disconnect)
    }
    rebaseOptimistic()
    tellChanges(&commands)
  }

  /// The frame limit that the daemon announced; memory still grows only with the bytes received.
  private var daemonFrameBytes: Int {
    Int(clamping: welcome?.limits.first { $0.name == "frameBytes" }?.value ?? 0)
  }

  mutating func tellChanges(_ commands: inout [Command]) {
    guard !changed.isEmpty else { return }
    for number in changed.sorted() { commands.append(.notify(.changed(number))) }
    changed.removeAll(keepingCapacity: true)
  }

  private mutating func read(
    _ item: UnsafeRawBufferPointer, _ commands: inout [Command]
  ) throws(WireError) {
    guard let welcome else { return try readFirst(item, &commands) }
    if case .greeting = phase { return try readFirst(item, &commands) }
    var decoder = CBORDecoder(item)
    let head = try MessageHead(from: &decoder)
    if head.type == .patch {
      try readPatches(head, &decoder, welcome, &commands)
    } else {
      let message = try ServerMessage(item, seed: welcome.seed)
      try handle(message, welcome, &commands)
    }
    tellHeld(&commands)
  }

  /// Give up a mirror that contains something unknown here, if other mirrors are readable; else the
  /// session ends.
  private mutating func giveUp(
    _ index: Int, _ error: CBORError, _ commands: inout [Command]
  ) throws(WireError) {
    let reason = unreadable(error)
    let isAlone = mirrors.indices.allSatisfy { $0 == index || mirrors[$0].isUnreadable }
    guard reason.code == .schema, !isAlone else { throw reason }
    let number = mirrors[index].number
    mirrors[index].freeze()
    commands.append(.send(Self.frame(.unsubscribe(subscription: number))))
    commands.append(.notify(.unreadable(number, Goodbye(reason))))
  }

  /// The goodbye for bytes that cannot be decoded.
  private func unreadable(_ error: CBORError) -> WireError {
    guard case .unknownCase(let number) = error.kind else { return .malformed(error) }
    let names = stateTranslation?.names(ofCase: number) ?? []
    let what = names.isEmpty ? "case number \(number)" : names.joined(separator: " or ")
    return WireError(
      .schema, "the daemon's \(what) is not known here, and there is no fallback for it")
  }

  // MARK: The greeting

  private mutating func readFirst(
    _ item: UnsafeRawBufferPointer, _ commands: inout [Command]
  ) throws(WireError) {
    switch try ServerMessage(item, seed: .unseeded) {
    case .welcome(let welcome): try greet(welcome, &commands)
    case .goodbye(let goodbye): lastGoodbye = goodbye
    case let other: throw WireError(.outOfOrder, "the first message was no welcome: \(other)")
    }
  }

  private mutating func greet(
    _ welcome: ServerMessage.Welcome, _ commands: inout [Command]
  ) throws(WireError) {
    // A daemon that sends no schema has the one whose fingerprint our hello carried.
    let said = welcome.schema ?? (schema == nil ? configuration.schemaUse.expected : nil)
    if let said { try adopt(said, &commands) }
    phase = .live
    attempt = 0
    lastDigest = now
    self.welcome = welcome
    token = welcome.token
    if !welcome.isResumed {
      forgetSent(&commands)
      // The next action to be sent is number 1 of the new session.
      numberOffset = firstUnacknowledged - 1
    }
    // The next action that the daemon has not decided. If the daemon has lost actions that it
    // decided before, the pending actions take over their numbers.
    let next = firstUnacknowledged
    // Invariant: numbers begin at 1, so `next` is more than the offset; the daemon's number may be
    // anything.
    if welcome.isResumed, next - numberOffset - 1 > welcome.lastAction {
      numberOffset = next - 1 - welcome.lastAction
    }
    reconnectOptimistic(isResumed: welcome.isResumed, last: welcome.lastAction)
    commands.append(.notify(.connection(.live)))
    for index in mirrors.indices { mirrors[index].isUnreadable = false }
    for mirror in mirrors { commands.append(subscription(of: mirror)) }
    sendPending(&commands)
  }

  // MARK: The stream

  private mutating func handle(
    _ message: ServerMessage, _ welcome: ServerMessage.Welcome, _ commands: inout [Command]
  ) throws(WireError) {
    switch message {
    case .subscribed(let subscribed): handle(subscribed, welcome, &commands)
    case .snapshot(let snapshot):
      for index in mirrors.indices where mirrors[index].scope == snapshot.scope {
        do throws(CBORError) {
          if try mirrors[index].take(snapshot, welcome) { noteChange(index, &commands) }
        } catch {
          try giveUp(index, error, &commands)
        }
      }
    case .acknowledgement(let acknowledgement):
      heldAcknowledgements.append(acknowledgement)
    case .bookmark(let revision, _): advance(to: revision)
    case .pong(let value, let revision):
      advance(to: revision)
      if value != 0 { commands.append(.notify(.pong(value, revision: revision))) }
    case .digest(let number, let revision, let digest):
      compare(number, revision, digest, welcome, &commands)
    case .schema(let schema):
      if try adopt(schema, &commands) { resubscribe(&commands) }
    case .report(let number, let value, let hasMore):
      take(value, of: number, hasMore: hasMore, &commands)
    case .goodbye(let goodbye): lastGoodbye = goodbye
    case .restarting(let retryAfter):
      lastGoodbye = Goodbye(.restarting, "the daemon restarts", retryAfter: retryAfter)
    case .restarted(let position):
      lastGoodbye = nil
      self.welcome?.position = position
      for index in mirrors.indices { mirrors[index].takeOver(position) }
    case .decided(let number, let revision): decided(through: number, at: revision)
    case .welcome: throw WireError(.outOfOrder, "a second welcome")
    case .patch: break
    }
  }

  /// Process a report, or a page of one.
  private mutating func take(
    _ page: Value, of query: UInt64, hasMore: Bool, _ commands: inout [Command]
  ) {
    var report = page
    if let before = pages.removeValue(forKey: query) { report = before.joined(with: page) }
    if hasMore {
      pages[query] = report
    } else {
      commands.append(.notify(.report(query, report)))
    }
  }

  private mutating func handle(
    _ subscribed: ServerMessage.Subscribed, _ welcome: ServerMessage.Welcome,
    _ commands: inout [Command]
  ) {
    guard let index = mirrors.firstIndex(where: { $0.number == subscribed.subscription }) else {
      return
    }
    if subscribed.continuation == .refused {
      let shown = !mirrors[index].value.isAbsent
      mirrors[index].end()
      commands.append(.notify(.refused(subscribed.subscription, subscribed.reason)))
      if shown { changed.insert(subscribed.subscription) }
      return
    }
    if mirrors[index].subscribed(subscribed, welcome) { noteChange(index, &commands) }
    if subscribed.continuation == .current { changed.insert(subscribed.subscription) }
  }

  private mutating func noteChange(_ index: Int, _ commands: inout [Command]) {
    let mirror = mirrors[index]
    changed.insert(mirror.number)
    if mirror.notesPatches { commands.append(.notify(.patched(mirror.number, patch: []))) }
    if mirror.everyRevision, let revision = mirror.position?.revision {
      commands.append(
        .notify(.revised(mirror.number, mirror.value, revision: revision, patch: [])))
    }
  }

  /// Apply a frame of patches to the mirror of its scope, without a copy of them.
  private mutating func readPatches(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ welcome: ServerMessage.Welcome,
    _ commands: inout [Command]
  ) throws(WireError) {
    var reading: Int?
    do throws(CBORError) {
      try readPatches(head, &decoder, welcome, &reading, &commands)
    } catch {
      guard let reading else { throw unreadable(error) }
      try giveUp(reading, error, &commands)
    }
  }

  /// `reading` is the mirror to which an error belongs.
  private mutating func readPatches(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ welcome: ServerMessage.Welcome,
    _ reading: inout Int?, _ commands: inout [Command]
  ) throws(CBORError) {
    let scope = try decoder.unsigned()
    var revision = try decoder.unsigned()
    guard let index = mirrors.firstIndex(where: { $0.scope == scope }) else { return }
    reading = index
    for _ in 0..<(1 + head.extraFields / 2) {
      let spanOffset = decoder.offset
      let span = try decoder.unsigned()
      let (to, overflow) = revision.addingReportingOverflow(span)
      guard !overflow else { throw CBORError(.numberOutOfRange, at: spanOffset) }
      let start = decoder.offset
      let outcome = try mirrors[index].apply(
        &decoder, from: revision, to: to, welcome, skipsBaseCheck: skipsBaseCheck)
      switch outcome {
      case .known: break
      case .applied:
        changed.insert(mirrors[index].number)
        if mirrors[index].everyRevision || mirrors[index].notesPatches {
          notePatch(index, decoder.consumed(since: start), to, &commands)
        }
      case .published: noteChange(index, &commands)
      case .untranslatable:
        resync(index, nil, &commands)
        return
      case .gap:
        let has = mirrors[index].patchable ?? 0
        resync(
          index, "a patch from revision \(revision) to \(to) does not follow \(has)", &commands)
        return
      }
      revision = to
    }
  }

  /// Give the notices of a patch that was applied.
  private func notePatch(
    _ index: Int, _ bytes: UnsafeRawBufferPointer, _ revision: UInt64, _ commands: inout [Command]
  ) {
    let patch =
      mirrors[index].translation == nil ? [UInt8](bytes) : mirrors[index].translatedPatch
    let number = mirrors[index].number
    if mirrors[index].notesPatches { commands.append(.notify(.patched(number, patch: patch))) }
    guard mirrors[index].everyRevision else { return }
    commands.append(
      .notify(.revised(number, mirrors[index].value, revision: revision, patch: patch)))
  }

  /// Request a snapshot to replace a mirror that cannot continue; `why` is the reason if the mirror
  /// has diverged.
  private mutating func resync(_ index: Int, _ why: String?, _ commands: inout [Command]) {
    let number = mirrors[index].number
    mirrors[index].counters.resyncs += 1
    mirrors[index].disconnect()
    mirrors[index].isHealing = true
    mirrors[index].position = nil
    if let why { commands.append(.notify(.diverged(number, why))) }
    commands.append(.send(Self.frame(.unsubscribe(subscription: number))))
    commands.append(subscription(of: mirrors[index]))
  }

  private mutating func advance(to revision: UInt64) {
    for index in mirrors.indices { mirrors[index].advance(to: revision) }
  }

  private mutating func compare(
    _ number: UInt64, _ revision: UInt64, _ digest: Digest?, _ welcome: ServerMessage.Welcome,
    _ commands: inout [Command]
  ) {
    commands.append(.notify(.digest(number, revision: revision, digest)))
    guard let digest, let index = mirrors.firstIndex(where: { $0.number == number }),
      mirrors[index].isLive
    else { return }
    mirrors[index].advance(to: revision)
    // The daemon's digest is that of the untranslated value.
    if mirrors[index].translation != nil { return }
    let ours = mirrors[index].value.digest(seed: welcome.seed)
    if ours != digest.rawValue {
      resync(index, "digest \(Digest(ours)), the daemon's \(digest) at \(revision)", &commands)
    }
  }

  // MARK: Acknowledgements

  /// Deliver the held acknowledgements, unless a mirror is behind them; with `evenUnseen` even
  /// then, because the stream ends and nothing else will come.
  mutating func tellHeld(_ commands: inout [Command], evenUnseen: Bool = false) {
    if heldAcknowledgements.isEmpty { return }
    if !evenUnseen && mirrors.contains(where: \.isHealing) { return }
    let held = heldAcknowledgements
    heldAcknowledgements.removeAll(keepingCapacity: true)
    for acknowledgement in held { acknowledge(acknowledgement, &commands) }
    if !evenUnseen { sendPending(&commands) }
  }

  private mutating func acknowledge(
    _ acknowledgement: Acknowledgement, _ commands: inout [Command]
  ) {
    // The stream has reached the revision in every scope that is live.
    advance(to: acknowledgement.revision)
    let waiting = pending.count - firstPending
    guard waiting > 0 else { return }
    let oldest = pending[firstPending].id.rawValue - numberOffset
    guard acknowledgement.last >= oldest, acknowledgement.first <= oldest else { return }
    let further = acknowledgement.last - oldest
    guard further < UInt64(sentOnConnection) else { return }
    let count = Int(further) + 1
    switch acknowledgement.outcome {
    case .reduced, .unchanged, .accepted: break
    case .rejected, .outcomeUnknown, .swallowed:
      dropOptimistic(pending[firstPending].id...pending[firstPending + count - 1].id)
    }
    tellOutcomes(count, acknowledgement, &commands)
    dropPending(count)
    sentOnConnection -= count
    sentInSession -= count
  }

  /// Report the outcomes of the oldest pending actions: the daemon's, but our own rejection for an
  /// action that could not be translated.
  private mutating func tellOutcomes(
    _ count: Int, _ acknowledgement: Acknowledgement, _ commands: inout [Command]
  ) {
    var first = firstPending
    let end = firstPending + count
    func tell(_ range: Range<Int>, _ acknowledgement: Acknowledgement) {
      if range.isEmpty { return }
      let ids = pending[range.lowerBound].id...pending[range.upperBound - 1].id
      let undone =
        switch acknowledgement.outcome {
        case .rejected, .outcomeUnknown, .swallowed: pending[range].map(\.payload)
        case .reduced, .unchanged, .accepted: [] as [[UInt8]]
        }
      commands.append(.notify(.acknowledged(ids, acknowledgement, undone: undone)))
    }
    if case .rejected = acknowledgement.outcome {
      for index in first..<end {
        guard let refusal = pending[index].refusal else { continue }
        tell(first..<index, acknowledgement)
        var own = acknowledgement
        own.outcome = .rejected(refusal)
        tell(index..<(index + 1), own)
        first = index + 1
      }
    }
    tell(first..<end, acknowledgement)
  }
}

extension Value {
  /// A page of a report joined with the next, as `Protocols/wire.md` says: arrays are concatenated,
  /// the entries of objects are joined by name, and anything else is replaced by the next.
  fileprivate func joined(with next: Value) -> Value {
    switch (self, next) {
    case (.array(var elements), .array(let more)):
      elements.append(contentsOf: more)
      return .array(elements)
    case (.object(var entries), .object(let more)):
      for (name, value) in more {
        entries.updateValue(entries[name]?.joined(with: value) ?? value, forKey: name)
      }
      return .object(entries)
    default: return next
    }
  }
}
