import CBOR
import ClientCore
import DaemonCore
import Lockstep
import Schemas
import Testing
import Values
import Wire

// Two builds of one feature, and clients of either that meet a daemon of the other.

extension First {
  enum Action: SynchronizableScalar, SynchronizableAction, Equatable {
    case add(String)
    case note(String?)
    case count(Int)
    /// The later build does not know it.
    case touch

    var name: String {
      switch self {
      case .add: "add"
      case .note: "note"
      case .count: "count"
      case .touch: "touch"
      }
    }

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
      schema.kind(of: Self.self, named: "Action") { _ in
        .enumeration([
          .init(0, "add", [.init(0, "_0", .text)]),
          .init(1, "note", [.init(0, "_0", .optional(.text))]),
          .init(2, "count", [.init(0, "number", .integer)]), .init(3, "touch"),
        ])
      }
    }

    func encode(into encoder: inout CBOREncoder) {
      if case .touch = self { return encoder.encode(3) }
      encoder.array(2)
      switch self {
      case .add(let title):
        encoder.encode(0)
        encoder.encode(title)
      case .note(let note):
        encoder.encode(1)
        note.encode(into: &encoder)
      case .count(let number):
        encoder.encode(2)
        encoder.encode(number)
      case .touch: break
      }
    }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      var item = try CaseDecoder(&decoder)
      switch item.number {
      case 0: self = .add(try item.field("Action", "_0", from: &decoder, seed: seed))
      case 1: self = .note(try item.field("Action", "_0", from: &decoder, seed: seed))
      case 2: self = .count(try item.field("Action", "number", from: &decoder, seed: seed))
      case 3: self = .touch
      default: throw item.unknown
      }
      try item.finish(&decoder)
    }
  }

  struct Builder: Reducer {
    func reduce(into state: inout State, action: Action) -> Effect<Action> {
      switch action {
      case .add(let title): state.todos.append(Todo(title: title))
      case .note(let note): state.note = note
      case .count(let number): state.byNumber[number] = Todo(title: "t\(number)")
      case .touch: state.old += 1
      }
      return .none
    }
  }
}

extension Second {
  enum Action: SynchronizableScalar, SynchronizableAction, Equatable {
    /// New.
    case show(Filter)
    case add(String)
    case note(String?)
    case count(isBig: Bool?, number: Int)

    var name: String {
      switch self {
      case .show: "show"
      case .add: "add"
      case .note: "note"
      case .count: "count"
      }
    }

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
      let filter = Filter.schemaKind(in: &schema)
      return schema.kind(of: Self.self, named: "Action") { _ in
        .enumeration([
          .init(0, "show", [.init(0, "_0", filter)]), .init(1, "add", [.init(0, "_0", .text)]),
          .init(2, "note", [.init(0, "_0", .optional(.text))]),
          .init(
            3, "count", [.init(0, "isBig", .optional(.bool)), .init(1, "number", .integer)]),
        ])
      }
    }

    func encode(into encoder: inout CBOREncoder) {
      switch self {
      case .show(let filter):
        encoder.array(2)
        encoder.encode(0)
        filter.encode(into: &encoder)
      case .add(let title):
        encoder.array(2)
        encoder.encode(1)
        encoder.encode(title)
      case .note(let note):
        encoder.array(2)
        encoder.encode(2)
        note.encode(into: &encoder)
      case .count(let isBig, let number):
        encoder.array(3)
        encoder.encode(3)
        isBig.encode(into: &encoder)
        encoder.encode(number)
      }
    }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      var item = try CaseDecoder(&decoder)
      switch item.number {
      case 0: self = .show(try item.field("Action", "_0", from: &decoder, seed: seed))
      case 1: self = .add(try item.field("Action", "_0", from: &decoder, seed: seed))
      case 2: self = .note(try item.field("Action", "_0", from: &decoder, seed: seed))
      case 3:
        self = .count(
          isBig: try item.field("Action", "isBig", from: &decoder, seed: seed),
          number: try item.field("Action", "number", from: &decoder, seed: seed))
      default: throw item.unknown
      }
      try item.finish(&decoder)
    }
  }

  struct Builder: Reducer {
    func reduce(into state: inout State, action: Action) -> Effect<Action> {
      switch action {
      case .show(let filter): state.filter = filter
      case .add(let title): state.todos.append(Todo(priority: 1, title: title))
      case .note(let note): state.note = note ?? "none"
      case .count(let isBig, let number):
        state.byNumber[number] = Todo(priority: isBig == true ? 9 : 2, title: "t\(number)")
      }
      return .none
    }
  }
}

/// A daemon of any feature, as its shell sees it.
private protocol AnyDaemon {
  mutating func open(_ id: ConnectionID) -> [Command]
  mutating func close(_ id: ConnectionID) -> [Command]
  mutating func receive(_ id: ConnectionID, _ bytes: [UInt8]) -> [Command]
  mutating func endTurn() -> [Command]
  /// Encode the snapshot that a command asks for.
  mutating func encode(_ id: SnapshotJobID) -> [Command]
}

private struct Daemon<R: Reducer>: AnyDaemon {
  var server: Server<R>

  init(_ state: R.State, _ reducer: R, run: UInt64) {
    server = Server(
      state, reducer: reducer, seed: HashSeed(7), epoch: 9, run: run,
      at: Instant(nanoseconds: 1_000_000_000))
  }

  private mutating func handle(_ event: Event<R.Action>) -> [Command] {
    var commands: [Command] = []
    server.handle(event, at: Instant(nanoseconds: 1_000_000_000), into: &commands)
    return commands
  }

  mutating func open(_ id: ConnectionID) -> [Command] {
    handle(.opened(id, Bench.peer, Bench.token(id.rawValue)))
  }

  mutating func close(_ id: ConnectionID) -> [Command] { handle(.closed(id)) }

  mutating func receive(_ id: ConnectionID, _ bytes: [UInt8]) -> [Command] {
    handle(.received(id, bytes))
  }

  mutating func endTurn() -> [Command] { handle(.turnEnded) }

  mutating func encode(_ id: SnapshotJobID) -> [Command] {
    guard let job = server.snapshot(for: id) else { return [] }
    return handle(.snapshotEncoded(id, job.encode()))
  }
}

/// A client of one build and a daemon of any, with nothing between them.
private struct Meeting<Mirrored: Synchronizable> {
  typealias Session = ClientSession
  var daemon: any AnyDaemon
  var session: Session
  var notices: [Session.Notice] = []
  /// A property of the session that is noted with every outcome.
  var shown: (Session) -> String? = { _ in nil }
  var shownAtOutcomes: [String?] = []
  private var connection: UInt64 = 0
  private var toDaemon: [UInt8] = []
  private let now = Instant(nanoseconds: 1_000_000_000)

  init(_ daemon: any AnyDaemon, _ use: SchemaUse) {
    self.daemon = daemon
    var configuration = Session.Configuration(label: "meeting")
    configuration.schemaUse = use
    session = Session(configuration, seed: 1)
    update { $0.start(at: $1, into: &$2) }
  }

  mutating func update(_ body: (inout Session, Instant, inout [Session.Command]) -> Void) {
    var commands: [Session.Command] = []
    body(&session, now, &commands)
    for command in commands {
      switch command {
      case .connect:
        connection += 1
        _ = daemon.open(ConnectionID(connection))
        update { $0.connected(at: $1, into: &$2) }
      case .send(let bytes): toDaemon += bytes
      case .disconnect: lose()
      case .notify(let notice):
        notices.append(notice)
        if case .acknowledged = notice { shownAtOutcomes.append(shown(session)) }
      }
    }
  }

  mutating func lose() {
    _ = daemon.close(ConnectionID(connection))
    toDaemon = []
    update { $0.disconnected(at: $1, into: &$2) }
  }

  /// Another daemon serves from now on.
  mutating func replace(by daemon: any AnyDaemon) {
    self.daemon = daemon
    toDaemon = []
    update { $0.disconnected(at: $1, into: &$2) }
  }

  mutating func run() {
    while true {
      let bytes = toDaemon
      toDaemon = []
      var commands: [Command] = []
      if !bytes.isEmpty { commands += daemon.receive(ConnectionID(connection), bytes) }
      commands += daemon.endTurn()
      let said = take(&commands)
      if said.isEmpty && toDaemon.isEmpty { return }
      update { session, now, commands in
        said.withUnsafeBytes { session.received($0, at: now, into: &commands) }
      }
    }
  }

  /// The messages to the client in the commands, after the snapshots that they command.
  private mutating func take(_ commands: inout [Command]) -> [UInt8] {
    var said: [UInt8] = []
    while !commands.isEmpty {
      var next: [Command] = []
      for command in commands {
        if case .send(ConnectionID(connection), let frames) = command { said += frames.joined() }
        if case .encodeSnapshot(let id) = command {
          next += daemon.encode(id)
          next += daemon.endTurn()
        }
      }
      commands = next
    }
    return said
  }

  mutating func subscribe(to path: Path = .root) -> UInt64 {
    var number: UInt64 = 0
    update { session, _, commands in
      number = session.subscribe(to: path, as: Mirrored.self, everyRevision: true, into: &commands)
    }
    return number
  }

  func value(of number: UInt64) -> Mirrored? { session.value(of: number, as: Mirrored.self) }

  mutating func send(_ action: some Synchronizable) {
    update { session, _, commands in
      _ = session.send(encoded { action.encode(into: &$0) }, into: &commands)
    }
  }

  var outcomes: [Acknowledgement.Outcome] {
    notices.flatMap { notice -> [Acknowledgement.Outcome] in
      guard case .acknowledged(let ids, let answer, _) = notice else { return [] }
      return Array(
        repeating: answer.outcome, count: Int(ids.upperBound.rawValue - ids.lowerBound.rawValue) + 1
      )
    }
  }

  var goodbye: Goodbye? {
    for case .connection(.closed(let goodbye)) in notices { return goodbye }
    return nil
  }
}

@Suite struct SchemaMeetingTests {
  @Test func `an old client follows a newer daemon`() throws {
    var meeting = Meeting<First.State>(
      Daemon(Second.State(filter: .tagged(name: "x", isExact: true)), Second.Builder(), run: 1),
      .expected(First.Builder.schema))
    let whole = meeting.subscribe()
    meeting.run()
    #expect(meeting.value(of: whole)?.filter == .unknown)
    meeting.send(First.Action.add("milk"))
    meeting.send(First.Action.count(7))
    meeting.send(First.Action.note("n"))
    meeting.run()
    #expect(
      meeting.value(of: whole)
        == First.State(
          todos: [.init(title: "milk")], note: "n", filter: .unknown,
          byNumber: [7: .init(title: "t7")]))
    #expect(meeting.outcomes == [.reduced, .reduced, .reduced])
  }

  @Test func `a part is named in the client's terms`() {
    var meeting = Meeting<String>(
      Daemon(Second.State(byNumber: [7: .init(title: "t")]), Second.Builder(), run: 1),
      .expected(First.Builder.schema))
    let title = meeting.subscribe(to: [.integer(5), .integer(7), .integer(1)])
    // The daemon has no such field: the path has no value.
    let old = meeting.subscribe(to: [.integer(6)])
    let other = meeting.subscribe(to: [.integer(77)])
    meeting.run()
    #expect(meeting.value(of: title) == "t")
    for number in [old, other] {
      #expect(meeting.session.mirror(number)?.isLive == true)
      #expect(meeting.value(of: number) == nil)
    }
    meeting.send(First.Action.count(7))
    meeting.run()
    #expect(meeting.value(of: title) == "t7")
  }

  @Test func `a new client follows an older daemon`() {
    var meeting = Meeting<Second.State>(
      Daemon(First.State(note: "n", filter: .unknown, old: 4), First.Builder(), run: 1),
      .expected(Second.Builder.schema))
    let whole = meeting.subscribe()
    meeting.run()
    #expect(meeting.value(of: whole) == Second.State(filter: .done, note: "n"))
    meeting.send(Second.Action.count(isBig: true, number: 3))
    meeting.send(Second.Action.show(.all))
    meeting.send(Second.Action.show(.done))
    meeting.send(Second.Action.add("x"))
    // No patch can say that the note is its default again.
    meeting.send(Second.Action.note(nil))
    meeting.run()
    #expect(
      meeting.value(of: whole)
        == Second.State(
          filter: .done, todos: [.init(priority: 3, title: "x")],
          byNumber: [3: .init(priority: 3, title: "t3")], note: "none"))
    let unknown = Acknowledgement.Outcome.rejected(
      RejectionMessage(code: 2, message: "the daemon does not know action.show", path: nil))
    #expect(meeting.outcomes == [.reduced, unknown, unknown, .reduced, .reduced])
    #expect(meeting.session.unacknowledged == 0)
  }

  @Test func `an action is acknowledged when what it did shows, though no patch says it`() {
    var meeting = Meeting<Second.State>(
      Daemon(First.State(note: "n"), First.Builder(), run: 1),
      .expected(Second.Builder.schema))
    let whole = meeting.subscribe()
    meeting.run()
    meeting.send(Second.Action.note(nil))
    meeting.shown = { $0.value(of: whole, as: Second.State.self)?.note }
    meeting.run()
    #expect(meeting.outcomes == [.reduced])
    #expect(meeting.shownAtOutcomes == ["none"])
  }

  @Test func `a daemon that restarts as a newer build is followed`() {
    var meeting = Meeting<First.State>(
      Daemon(First.State(old: 4), First.Builder(), run: 1), .expected(First.Builder.schema))
    let whole = meeting.subscribe()
    meeting.run()
    meeting.send(First.Action.touch)
    meeting.run()
    #expect(meeting.value(of: whole)?.old == 5)
    meeting.replace(by: Daemon(Second.State(note: "new"), Second.Builder(), run: 2))
    // The action waits while there is no connection, and is sent in the new daemon's schema.
    meeting.send(First.Action.add("milk"))
    meeting.run()
    #expect(
      meeting.value(of: whole)
        == First.State(todos: [.init(title: "milk")], note: "new"))
    meeting.replace(by: Daemon(First.State(old: 9), First.Builder(), run: 3))
    meeting.run()
    #expect(meeting.value(of: whole) == First.State(old: 9))
    #expect(meeting.outcomes == [.reduced, .reduced])
  }

  @Test func `the daemon's state is followed by names, with its patches`() throws {
    var meeting = Meeting<Value>(
      Daemon(First.State(filter: .named("f")), First.Builder(), run: 1), .names)
    let whole = meeting.subscribe()
    let part = meeting.subscribe(to: ["byNumber", "7"])
    meeting.run()
    meeting.send(First.Action.count(7))
    meeting.run()
    #expect(
      meeting.value(of: whole) == [
        "todos": [], "filter": ["named": "f"], "counts": [:], "old": 0,
        "byNumber": ["7": ["title": "t7", "isDone": false]],
      ])
    #expect(meeting.value(of: part) == ["title": "t7", "isDone": false])
    let patches = meeting.notices.compactMap { notice -> [UInt8]? in
      guard case .revised(whole, _, 1, let patch) = notice else { return nil }
      return patch
    }
    let expected: Value = ["byNumber": ["7": [["title": "t7", "isDone": false]]]]
    #expect(patches.count == 1)
    #expect(try TranslationTests.value(patches[0], as: Value.self) == expected)
  }

  @Test func `digests are compared only where nothing is translated`() {
    let daemon = Daemon(First.State(old: 1), First.Builder(), run: 1)
    var named = Meeting<Value>(daemon, .names)
    var same = Meeting<First.State>(daemon, .expected(First.Builder.schema))
    let first = named.subscribe()
    let second = same.subscribe()
    named.run()
    same.run()
    named.update { session, _, commands in session.requestDigest(of: first, into: &commands) }
    same.update { session, _, commands in session.requestDigest(of: second, into: &commands) }
    named.run()
    same.run()
    for notice in named.notices { if case .diverged = notice { Issue.record("diverged") } }
    for notice in same.notices { if case .diverged = notice { Issue.record("diverged") } }
    #expect(same.value(of: second) == First.State(old: 1))
    // A client that knows the daemon's schema is not sent it.
    #expect(same.session.welcome?.schema == nil)
    #expect(named.session.welcome?.schema != nil)
  }

  @Test func `schemas that cannot meet end the session with both types`() {
    var wrong = First.Builder.schema
    wrong.types["Todo"] = .structure([.init(1, "title", .integer), .init(2, "isDone", .bool)])
    var meeting = Meeting<First.State>(
      Daemon(First.State(), First.Builder(), run: 1), .expected(wrong))
    _ = meeting.subscribe()
    meeting.run()
    #expect(
      meeting.goodbye
        == Goodbye(.schema, "state.todos[].title is text in the daemon and integer here"))
    #expect(meeting.session.hasEnded)
  }

  @Test func `a case that nobody can stand for ends the session`() {
    var strict = First.Builder.schema
    strict.types["Filter"] = .enumeration([.init(0, "all"), .init(2, "unknown")])
    var meeting = Meeting<First.State>(
      Daemon(First.State(), First.Builder(), run: 1), .expected(strict))
    let whole = meeting.subscribe()
    meeting.run()
    #expect(meeting.value(of: whole) == First.State())
    meeting.replace(by: Daemon(First.State(filter: .named("x")), First.Builder(), run: 2))
    meeting.run()
    #expect(
      meeting.goodbye
        == Goodbye(
          .schema,
          "the daemon's state.filter.named is not known here, and there is no fallback for it"))
  }

  @Test func `a schema that comes later is followed`() {
    var meeting = Meeting<First.State>(
      Daemon(First.State(), First.Builder(), run: 1), .expected(First.Builder.schema))
    let whole = meeting.subscribe()
    meeting.run()
    // The same fields with other numbers, and the daemon's messages with them.
    var other = First.Builder.schema
    other.types["State"] = .structure(
      [.init(9, "old", .integer)] + [
        .init(1, "todos", .array(.type("Todo"))), .init(3, "filter", .type("Filter")),
        .init(4, "counts", .map(key: .text, value: .integer)),
        .init(5, "byNumber", .map(key: .integer, value: .type("Todo"))),
      ])
    func hear(_ message: ServerMessage) {
      let bytes = frame(message)
      meeting.update { session, now, commands in
        bytes.withUnsafeBytes { session.received($0, at: now, into: &commands) }
      }
    }
    hear(.schema(other))
    #expect(meeting.session.mirror(whole)?.isLive == false)
    #expect(meeting.value(of: whole) == First.State())
    hear(.subscribed(.init(subscription: whole, scope: 3, .snapshot, .none, revision: 6)))
    hear(
      .snapshot(
        .init(
          scope: 3, revision: 6, index: 0, isLast: true,
          bytes: [0xa5, 9, 8, 1, 0x80, 3, 0, 4, 0xa0, 5, 0xa0])))
    #expect(meeting.value(of: whole) == First.State(old: 8))
    hear(.patch(scope: 3, from: 6, [.init(span: 1, patch: [0xa1, 9, 0x18, 0x20])]))
    #expect(meeting.value(of: whole) == First.State(old: 32))
  }
}
