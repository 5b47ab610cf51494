import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

/// A room with a title and the presence of its members.
private struct Room: Reducer {
  struct State: Described {
    var title = ""
    var present = Present<Int>()
  }

  enum Action: DescribedAction, CasePathable {
    case presence(Presence<Int>.Action)

    struct AllCasePaths: Sendable {
      var presence: CasePath<Action, Presence<Int>.Action> {
        CasePath(
          embed: { .presence($0) },
          extract: { if case .presence(let action) = $0 { action } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Scope(state: \.present, action: \.presence) { Presence<Int>() }
  }
}

@Suite struct PresenceTests {
  private func store() -> TestStore<Presence<String>> {
    TestStore(initialState: Present()) { Presence() }
  }

  // MARK: - Entries

  @Test func `only the sender of an entry can change it`() async {
    let store = store()
    await store.send(.enter("a"), from: .client(session: 1)) { $0[1] = "a" }
    await store.send(.enter("b"), from: .client(session: 2)) { $0[2] = "b" }
    await store.send(.update("c"), from: .client(session: 2)) { $0[2] = "c" }
    await store.send(.leave, from: .client(session: 1)) { $0[1] = nil }
    #expect(store.state.map(\.session) == [2] && store.state.sessionCount == 1)
    #expect(!store.state.contains(1) && store.state.contains(2))
  }

  @Test func `a second enter replaces the entry, and a reconnected client still has its entry`()
    async
  {
    let store = store()
    await store.send(.enter("a"), from: .client(session: 1)) { $0[1] = "a" }
    await store.send(.enter("b"), from: .client(session: 1)) { $0[1] = "b" }
    let elsewhere = ClientOrigin(connection: 99, pid: 98, uid: 0, gid: 0, session: 1)
    await store.send(.update("c"), from: Cause(.client(elsewhere))) { $0[1] = "c" }
    await store.send(.update("c"), from: Cause(.client(elsewhere)))
  }

  @Test func `an absent entry cannot be updated, and leaving it changes nothing`() async {
    let store = store()
    await store.send(.update("a"), from: .client(session: 1), rejected: .badPath)
    await store.send(.leave, from: .client(session: 1))
    await store.send(.enter("a"), from: .client(session: 1)) { $0[1] = "a" }
    await store.send(.update("b", key: "x"), from: .client(session: 1), rejected: .badPath)
    await store.send(.leave(key: "x"), from: .client(session: 1))
    await store.send(.leave, from: .client(session: 1)) { $0 = Present() }
    #expect(store.state.isEmpty)
  }

  @Test func `a session can have several entries, up to a limit`() async {
    let store = TestStore(initialState: Present()) { Presence<String>(entriesPerSession: 2) }
    let client = Cause.client(session: 5)
    await store.send(.enter("a"), from: client) { $0[5] = "a" }
    await store.send(.enter("b", key: "left"), from: client) { $0[5, "left"] = "b" }
    await store.send(.enter("c", key: "right"), from: client, rejected: .limit)
    await store.send(.enter("d", key: "left"), from: client) { $0[5, "left"] = "d" }
    await store.send(.enter("e"), from: .client(session: 6)) { $0[6] = "e" }
    let entries = store.state.map { "\($0.session)/\($0.key)=\($0.entry)" }
    #expect(entries.sorted() == ["5/=a", "5/left=d", "6/=e"])
    #expect(store.state.entryCount(of: 5) == 2)
    await store.tell(.ended(session: 5, reason: .exited)) { $0.remove(5) }
    #expect(store.state.map(\.entry) == ["e"])
    let long = String(repeating: "x", count: 129)
    await store.send(.enter("f", key: long), from: .client(session: 6), rejected: .limit)
  }

  // MARK: - Who may

  @Test func `only a client can be present`() async {
    let store = store()
    await store.send(
      .enter("a"),
      rejected: Rejection(
        .refused, "only a client can be present, and this came from the daemon"))
    let client = ClientOrigin(connection: 1, pid: 2, uid: 3, gid: 4, session: 5)
    let sent = Cause(.middleware("greeter"), client: client)
    await store.send(.enter("a"), from: sent, rejected: .refused)
    for session in [0, 1 << 63, UInt64.max] {
      await store.send(.enter("a"), from: .client(session: session), rejected: .refused)
    }
    await store.send(.leave, from: .client(session: 0), rejected: .refused)
  }

  @Test func `outside a store there is no sender`() {
    var state = Present<String>()
    #expect(
      throws: Rejection(
        .refused, "only a client can be present, and this came from nobody known")
    ) {
      try Presence().reduce(into: &state, action: .enter("a"))
    }
  }

  @Test func `a client cannot end another client's session`() async {
    let store = store()
    await store.send(.enter("a"), from: .client(session: 1)) { $0[1] = "a" }
    let end = Presence<String>.Action.session(.ended(session: 1, reason: .exited))
    await store.send(end, from: .client(session: 2), rejected: .denied)
    await store.send(end, from: .client(session: 1), rejected: .denied)
    await store.send(end) { $0[1] = nil }
  }

  @Test func `an entry is completed or refused according to its sender`() async {
    let store = TestStore(initialState: Present()) {
      Presence<String> { (entry, client) throws(Rejection) in
        if entry.isEmpty { throw Rejection(.refused, "no name") }
        entry += " of \(client.uid)"
      }
    }
    await store.send(.enter("a"), from: .client(session: 1)) { $0[1] = "a of 1000" }
    await store.send(.update("b"), from: .client(session: 1)) { $0[1] = "b of 1000" }
    await store.send(.update(""), from: .client(session: 1), rejected: .refused)
    await store.send(.enter(""), from: .client(session: 2), rejected: .refused)
  }

  // MARK: - News

  @Test(arguments: [.exited, .graceOver, .goodbye] as [SessionEvent.EndReason])
  func `an entry is removed when its session ends, and not before`(
    reason: SessionEvent.EndReason
  ) async {
    let store = TestStore(initialState: Room.State()) { Room() }
    await store.send(.presence(.enter(1)), from: .client(session: 1)) { $0.present[1] = 1 }
    await store.send(.presence(.enter(2)), from: .client(session: 2)) { $0.present[2] = 2 }
    await store.tell(.lost(session: 1))
    await store.tell(.returned(session: 1))
    await store.tell(.lost(session: 1))
    await store.tell(.ended(session: 1, reason: reason)) { $0.present[1] = nil }
    await store.tell(.ended(session: 1, reason: reason))
    #expect(store.log.all.map(\.name).suffix(1) == ["presence.session"])
    #expect(store.log.all.count == 3)
  }

  @Test func `only a session event that changes something becomes an action`() {
    var state = Present<String>()
    state[1] = "a"
    let presence = Presence<String>()
    func actions(_ event: SessionEvent, _ state: Present<String>) -> [Presence<String>.Action] {
      presence.lifecycle.actions(for: .session(event), in: state)
    }
    #expect(presence.composedLifecycle.watchesSessions && Room().composedLifecycle.watchesSessions)
    #expect(actions(.lost(session: 1), state) == [])
    #expect(actions(.returned(session: 1), state) == [])
    let end = SessionEvent.ended(session: 1, reason: .graceOver)
    #expect(actions(end, state) == [.session(end)])
    #expect(actions(end, Present()) == [])
  }

  // MARK: - On the wire

  @Test func `a patch has the size of the change, and a mirror follows it`() throws {
    var core = StoreCore(Present<Int>(), reducer: Presence(), seed: HashSeed(7))
    var mirror = try decode(Present<Int>.self, encode(core.state))
    var generator = SplitMix64(3)
    for step in 0..<2000 {
      let session = generator.next() % 40 + 1
      let key = ["", "a", "b"][step % 3]
      let action: Presence<Int>.Action =
        switch generator.next() % 4 {
        case 0: .leave(key: key)
        case 1: .session(.ended(session: session, reason: .exited))
        default: .enter(step, key: key)
        }
      var patch = CBOREncoder()
      let cause: Cause = if case .session = action { .owner } else { .client(session: session) }
      guard case .changed = core.send(action, from: cause, patch: &patch) else { continue }
      #expect(patch.bytes.count <= 12)
      try patch.bytes.withUnsafeBytes {
        var decoder = CBORDecoder($0)
        try mirror.apply(patch: &decoder, seed: HashSeed(7))
        mirror.adopt(seed: HashSeed(7))
      }
      #expect(mirror == core.state)
    }
    #expect(mirror.digest(seed: HashSeed(7)) == core.state.digest(seed: HashSeed(7)))
    #expect(try decode(Present<Int>.self, encode(core.state)) == core.state)
    #expect(core.state.sessions.allSatisfy { !$0.value.isEmpty } && !core.state.isEmpty)
  }

  @Test func `one entry can be subscribed to`() {
    struct Visitor: PartVisitor {
      var found = "nothing"
      mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
        found = new.map { "\(T.self) \(encode($0))" } ?? "absent"
      }
      mutating func visitAbsent() { found = "none" }
      func encode(_ value: some Synchronizable) -> [UInt8] {
        var encoder = CBOREncoder()
        value.encode(into: &encoder)
        return encoder.bytes
      }
    }
    var state = Present<Int>()
    state[3, "x"] = 9
    func found(_ keys: PathKey...) -> String {
      var visitor = Visitor()
      Present.visit(state, nil, at: Path(keys), from: 0, &visitor)
      return visitor.found
    }
    #expect(found() == "Present<Int> [161, 3, 161, 97, 120, 9]")
    #expect(found(3, "x") == "Int [9]")
    #expect(found(3, "y") == "absent" && found("x") == "none")
  }

  @Test func `actions survive a round trip, and a key is optional`() throws {
    let actions: [Presence<Int>.Action] = [
      .enter(1), .enter(2, key: "k"), .update(3), .update(4, key: "k"), .leave, .leave(key: "k"),
      .session(.lost(session: 5)), .session(.ended(session: 6, reason: .goodbye)),
    ]
    for action in actions {
      let copy = try decode(Presence<Int>.Action.self, encode(action))
      #expect(copy == action && copy.isSame(as: action))
      #expect(actions.count { $0.isSame(as: action) } == 1)
    }
    #expect(try decode(Presence<Int>.Action.self, [0x82, 0, 7]) == .enter(7))
    #expect(try decode(Presence<Int>.Action.self, [0x82, 1, 7]) == .update(7))
    #expect(try decode(Presence<Int>.Action.self, [2]) == .leave)
    #expect(throws: CBORError.self) { try decode(Presence<Int>.Action.self, [4]) }
    #expect(actions[1][case: \.enter]?.key == "k" && actions[4].is(\.leave))
    #expect(actions.map(\.name).first == "enter" && actions.map(\.name).last == "session")
  }

  @Test func `the schema has the types of state and action`() {
    let schema = Presence<Int>.schema
    #expect(schema.state == .map(key: .integer, value: .map(key: .text, value: .integer)))
    #expect(schema.action == .type("Presence.Action"))
    #expect(Set(schema.types.keys) == ["Presence.Action", "SessionNews"])
  }

  private func encode(_ value: some Synchronizable) -> [UInt8] {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return encoder.bytes
  }

  private func decode<T: Synchronizable>(_ type: T.Type, _ bytes: [UInt8]) throws -> T {
    try bytes.withUnsafeBytes {
      var decoder = CBORDecoder($0)
      return try T(from: &decoder, seed: HashSeed(7))
    }
  }
}
