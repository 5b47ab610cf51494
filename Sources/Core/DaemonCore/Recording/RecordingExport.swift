public import Access
import CBOR
public import Lockstep
import Records
public import Values
import Wire

// Theory of operation
//
// A recording has all that the state has. To give one to others without some of that, its events are
// handled by another server, with other values in them, and what that one does is recorded. So the result
// is a recording like any other: it is replayed, and equal to itself. Nothing of the original is copied
// that holds values: not the past, the log or the patches before its beginning, and no work that was done
// beside the loop, which is done again here. When that was done is kept as it was, as far as the other
// server asks for the same work.

/// A recording of the same events with other values: for others, who may not see all of it.
///
/// A class, because a daemon that links it would have 60 KB of code to copy such a struct.
public final class RecordingExport<R: Reducer> {
  /// What is put in the place of what others may not see. Equal for equal, or the replay goes another way.
  public struct Replacements {
    public var state: (R.State) -> R.State
    /// An action on a state, which has other values already.
    public var action: (R.Action, R.State) -> R.Action
    /// A path of a state that a client names, of a subscription or in a query.
    public var path: (Path, R.State) -> Path
    /// Any other text of a client.
    public var text: (String) -> String

    public init(
      state: @escaping (R.State) -> R.State, action: @escaping (R.Action, R.State) -> R.Action,
      path: @escaping (Path, R.State) -> Path, text: @escaping (String) -> String
    ) {
      self.state = state
      self.action = action
      self.path = path
      self.text = text
    }
  }

  /// The result of an export.
  public struct Report: Equatable, Sendable {
    /// The recording.
    public var bytes: [UInt8] = []
    /// The number of its events.
    public var events = 0
    public var revision: UInt64 = 0
    /// The first event of the original after which the revision is another one than there: because of
    /// other values, actions have other outcomes. Nil if there is none.
    public var firstOther: Int?
  }

  private var reader: RecordingReader<R>
  private let replacements: Replacements
  private var server: Server<R>
  private var report = Report()
  private var coming: ComingWork
  /// The bytes of each connection behind its last whole message.
  private var frames: [ConnectionID: FrameDecoder] = [:]
  private var jobs: [ConnectionID: ActionJob<R>] = [:]
  private var questions: [Question: ShellQuery] = [:]
  /// The state with which the process began, and that of which a checkpoint is to be made.
  private let first: (state: R.State, revision: UInt64)
  private var checkpoint: (state: R.State, revision: UInt64)?
  private var lastBatch: UInt64 = 0

  /// The policies that the recorded server had, the first one first. Throws if a piece cannot be read.
  public static func policies(in bytes: [UInt8]) throws(RecordingError) -> [Policy] {
    var reader = try RecordingReader<R>(bytes)
    var policies = reader.setup.policy.map { [$0] } ?? []
    while let piece = try reader.next() {
      if case .event(_, .policy(let policy)) = piece { policies.append(policy) }
    }
    return policies
  }

  /// Make the export of a recording: `run`. Reads it once. Throws if a piece cannot be read.
  public convenience init(
    _ bytes: [UInt8], replacing replacements: Replacements, reducer: R,
    middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues()
  ) throws(RecordingError) {
    let reader = try RecordingReader<R>(bytes)
    let coming = try ComingWork(in: reader)
    var setup = reader.setup
    setup.kept = Self.replaced(setup.kept, by: replacements.state(setup.kept.state))
    let server = Server(
      setup, reducer: reducer, middleware: middleware, dependencies: dependencies)
    self.init(reader, coming, server, replacements, (server.state, server.revision))
    report.bytes = Recording.head(setup, schema: R.schema)
  }

  /// Designated, so it does nothing else, as that of `Replay`.
  private init(
    _ reader: RecordingReader<R>, _ coming: ComingWork, _ server: Server<R>,
    _ replacements: Replacements, _ first: (state: R.State, revision: UInt64)
  ) {
    (self.reader, self.coming, self.server) = (reader, coming, server)
    (self.replacements, self.first) = (replacements, first)
  }

  /// What was kept, with another state, and without what else has its values.
  private static func replaced(
    _ kept: RestoredState<R.State>, by state: R.State
  ) -> RestoredState<R.State> {
    var new = RestoredState(
      state: state, epoch: kept.epoch, seed: kept.seed, run: kept.run, runs: kept.runs,
      revision: kept.revision, base: kept.base, sequence: kept.sequence,
      sessions: kept.sessions.map { session in
        var session = session
        for index in session.outcomes.indices {
          guard case .rejected(let message) = session.outcomes[index].outcome else { continue }
          session.outcomes[index].outcome = .rejected(
            RejectionMessage(code: message.code, message: leftOut, path: nil))
        }
        return session
      }, sessionCount: kept.sessionCount)
    new.state.adopt(seed: kept.seed)
    new.poisoned = kept.poisoned
    new.unjournaledSessions = kept.unjournaledSessions
    new.isHandedOver = kept.isHandedOver
    new.durable = kept.durable
    new.journaledBytes = kept.journaledBytes
    return new
  }

  private static var leftOut: String { "left out" }

  // MARK: Events

  /// Handle all events again. O(the recording, and its replay).
  public func run() throws(RecordingError) -> Report {
    var waiting: (time: Instant, event: Event<R.Action>)?
    while let piece = try reader.next() {
      switch piece {
      case .event(let time, let event): waiting = (time, event)
      case .commands(_, _, let revision):
        guard let (time, event) = waiting else { continue }
        waiting = nil
        if let event = replaced(event) { handle(event, at: time) }
        if server.revision != revision, report.firstOther == nil {
          report.firstOther = reader.events
        }
      case .end:
        report.bytes += Recording.end(revision: server.revision, digest: server.digest())
      }
    }
    // The event that ended the process may end this one, too: it is not handled, and nothing is decoded
    // for it.
    jobs = [:]
    if let (time, event) = waiting, let event = replaced(event) {
      report.bytes += Recording.event(event, at: time) ?? []
    }
    report.revision = server.revision
    return report
  }

  private func handle(_ event: Event<R.Action>, at time: Instant) {
    var events = [event]
    while !events.isEmpty {
      let event = events.removeFirst()
      guard let bytes = Recording.event(event, at: time) else { continue }
      report.events += 1
      report.bytes += bytes
      var commands: [Command] = []
      server.handle(event, at: time, into: &commands)
      report.bytes += Recording.commands(commands, revision: server.revision)
      for command in commands { events += done(command) }
    }
  }

  /// Do what the shell does beside the loop: later, if the recording says when, or at once, because here
  /// something else is asked for.
  private func done(_ command: Command) -> [Event<R.Action>] {
    switch command {
    case .encodeSnapshot(let id):
      return coming.snapshots.contains(id) ? [] : encoded(id)
    case .decodeAction(let id):
      // Where the recording has no result, its process ended before there was one.
      jobs[id] = server.action(for: id)
      return []
    case .makeCheckpoint:
      checkpoint = (server.state, server.revision)
      return coming.checkpoints > 0 ? [] : checkpointMade(of: nil)
    case .computeDigest: return coming.digests > 0 ? [] : [.digestComputed]
    case .answer(let id, let query, let asked):
      let question = Question(connection: id, query: query)
      questions[question] = asked
      // Likewise a jump, which changes the state.
      if case .past(let request, _) = asked, case .change = request.subject { return [] }
      return coming.answers[question, default: 0] > 0 ? [] : answered(question, nil)
    case .keep(let batch):
      lastBatch = batch.number
      return []
    default: return []
    }
  }

  private func encoded(_ id: SnapshotJobID) -> [Event<R.Action>] {
    guard let (frames, wholeBytes) = server.snapshot(for: id)?.measured() else { return [] }
    return [.snapshotEncoded(id, frames, wholeBytes: wholeBytes)]
  }

  /// `revision` is that of the recorded one, which may be of the state with which the process began.
  private func checkpointMade(of revision: UInt64?) -> [Event<R.Action>] {
    guard let asked = checkpoint else { return [] }
    checkpoint = nil
    let (state, revision) = revision == first.revision ? first : asked
    var encoder = CBOREncoder()
    state.encode(into: &encoder)
    return [.checkpointMade(revision, encoder.bytes)]
  }

  /// `recorded` is the answer of the recorded server, which is used where it does not come from the state.
  private func answered(
    _ question: Question, _ recorded: [UInt8]?
  ) -> [Event<R.Action>] {
    guard let asked = questions.removeValue(forKey: question) else { return [] }
    let (id, query) = (question.connection, question.query)
    switch asked {
    case .reloadPolicy, .metrics:
      let answer = recorded ?? ReportError(.refused, Self.leftOut).report.encoded
      return [.answered(id, query: query, answer)]
    case .parts, .past:
      switch server.inspection(of: asked, for: id) {
      case .success(let inspection)?: return [inspection.finding().event(for: id, query: query)]
      case .failure(let error)?: return [.answered(id, query: query, error.report.encoded)]
      case nil: return []
      }
    }
  }

  /// An event of the original, as this server gets it; nil if it does not.
  private func replaced(_ event: Event<R.Action>) -> Event<R.Action>? {
    switch event {
    case .opened(let id, _, _):
      frames[id] = FrameDecoder(limit: reader.setup.limits.frameBytes)
      return event
    case .closed(let id):
      frames[id] = nil
      return event
    case .received(let id, let bytes):
      let bytes = messages(bytes, of: id)
      return bytes.isEmpty ? nil : .received(id, bytes)
    case .inherited(var connection, let isTranslated):
      let id = ConnectionID(connection.id)
      frames[id] = FrameDecoder(limit: reader.setup.limits.frameBytes)
      connection.unparsed = messages(connection.unparsed, of: id)
      connection.unsent = []
      for index in connection.subscriptions.indices {
        connection.subscriptions[index].path = replacements.path(
          connection.subscriptions[index].path, server.state)
      }
      return .inherited(connection, isTranslated: isTranslated)
    case .acted(let action): return self.action(payload(of: action)).map { .acted($0) }
    case .effectSent(let id, let action):
      return self.action(payload(of: action)).map { .effectSent(id, $0) }
    case .effectEnded(let id, let error):
      return .effectEnded(id, unhandled: error.map { _ in Self.leftOut })
    case .effectCancelled(let name):
      return .effectCancelled(server.runningName(of: name.texts) ?? name)
    case .journal(.committed(let number)):
      return .journal(.committed(through: min(number, lastBatch)))
    case .snapshotEncoded(let id, _, _):
      coming.snapshots.remove(id)
      return encoded(id).first
    case .snapshotImpossible(let id):
      coming.snapshots.remove(id)
      return server.snapshot(for: id) == nil ? nil : event
    case .actionDecoded(let id, let action):
      let job = jobs.removeValue(forKey: id)
      return .actionDecoded(id, action == nil ? nil : job?.decoded())
    case .checkpointMade(let revision, let bytes):
      coming.checkpoints -= 1
      if !bytes.isEmpty { return checkpointMade(of: revision).first }
      checkpoint = nil
      return event
    case .digestComputed:
      coming.digests -= 1
      return event
    case .answered(let id, let query, let answer):
      let question = Question(connection: id, query: query)
      coming.answers[question, default: 0] -= 1
      return answered(question, answer).first
    case .changeFound, .stateMeasured, .memoryMeasured, .blocked, .drained, .turnEnded, .journal,
      .started, .clockSet, .exited, .policy, .tick, .stop, .handingOver, .scopesReserved:
      return event
    }
  }

  // MARK: Messages

  /// The whole messages that end with these bytes, with other values.
  private func messages(_ bytes: [UInt8], of id: ConnectionID) -> [UInt8] {
    guard var decoder = frames.removeValue(forKey: id) else { return [] }
    var encoder = CBOREncoder()
    let isSound = bytes.withUnsafeBytes { bytes in
      do throws(WireError) {
        try decoder.receiveAll(bytes) { item in
          Frame.append(to: &encoder) { message(item, into: &$0) }
        }
        return true
      } catch {
        return false
      }
    }
    if isSound { frames[id] = decoder } else { encoder.bytes += Self.tooLarge }
    return encoder.bytes
  }

  /// The length of a frame that is over every limit.
  private static var tooLarge: [UInt8] { [0xff, 0xff, 0xff, 0xff] }

  /// Append a message with other values. One that cannot be read becomes another that cannot.
  private func message(_ item: UnsafeRawBufferPointer, into encoder: inout CBOREncoder) {
    guard let message = try? ClientMessage(item) else { return encoder.encodeNull() }
    switch message {
    case .action(let number, let mark, let payload):
      let other = action(payload).map(self.payload(of:)) ?? Self.noPayload
      ClientMessage.action(number: number, mark, payload: other).encode(into: &encoder)
    case .subscribe(let subscription, let path, let position):
      ClientMessage.subscribe(
        subscription: subscription, replacements.path(path, server.state), position
      ).encode(into: &encoder)
    case .query(let number, let name, let arguments):
      let known = ReportName(rawValue: name) == nil ? replacements.text(name) : name
      ClientMessage.query(number: number, known, arguments: self.arguments(arguments, of: name))
        .encode(into: &encoder)
    case .goodbye(let code, _):
      ClientMessage.goodbye(code, "").encode(into: &encoder)
    case .hello, .unsubscribe, .ping, .digestRequest: message.encode(into: &encoder)
    }
  }

  /// `null`, which is no action.
  private static var noPayload: [UInt8] { [0xf6] }

  /// An action as it travels, with other values.
  private func payload(of action: R.Action) -> [UInt8] {
    var encoder = CBOREncoder()
    replacements.action(action, server.state).encode(into: &encoder)
    return encoder.bytes
  }

  /// The action in a payload; nil if there is none. What travels decides in which order its parts come.
  private func action(_ payload: [UInt8]) -> R.Action? {
    let seed = reader.setup.kept.seed
    return try? CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try R.Action(from: &decoder, seed: seed)
    }
  }

  /// The arguments of a query: paths, numbers, and what may be anything.
  private func arguments(_ arguments: [String], of query: String) -> [String] {
    var others = arguments.map { text in
      if text.utf8.count <= 20, text.utf8.allSatisfy({ 48...57 ~= $0 }) { return text }
      guard let path = Path(pointer: text) else { return replacements.text(text) }
      return replacements.path(path, server.state).pointer
    }
    // The path after which a listing begins leads from that of the listing.
    if query == ReportName.parts.rawValue, arguments.count > 3,
      let path = Path(pointer: arguments[0]), let after = Path(pointer: arguments[3])
    {
      let whole = replacements.path(Path(path.keys + after.keys), server.state)
      others[3] = Path(Array(whole.keys.dropFirst(path.keys.count))).pointer
    }
    return others
  }
}

/// A query of a connection, which is answered beside the loop.
private struct Question: Hashable {
  let connection: ConnectionID
  let query: UInt64
}

/// The work beside the loop whose results are still to come in a recording.
private struct ComingWork {
  var snapshots: Set<SnapshotJobID> = []
  var answers: [Question: Int] = [:]
  var checkpoints = 0
  var digests = 0

  init<R: Reducer>(in reader: RecordingReader<R>) throws(RecordingError) {
    var reader = reader
    while let piece = try reader.next() {
      guard case .event(_, let event) = piece else { continue }
      switch event {
      case .snapshotEncoded(let id, _, _), .snapshotImpossible(let id): snapshots.insert(id)
      case .checkpointMade: checkpoints += 1
      case .digestComputed: digests += 1
      case .answered(let id, let query, _):
        answers[Question(connection: id, query: query), default: 0] += 1
      default: break
      }
    }
  }
}
