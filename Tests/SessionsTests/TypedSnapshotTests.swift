import CBOR
import DaemonCore
import Lockstep
import Testing
import Values
import Wire

/// Snapshots of a state with types of its own: whether a part of it is small is known as of a document.
@Suite struct TypedSnapshotTests {
  @Test func `a small part is sent at once, and a large one is encoded beside the loop`() {
    var table = Table()
    table.act(.set("small", "a"))
    table.act(.set("large", String(repeating: "x", count: 200_000)))
    for (number, name) in [(1, "small"), (2, "large"), (3, "absent")] as [(UInt64, String)] {
      table.say(.subscribe(subscription: number, [.integer(0), .text(name)], nil))
      let jobs = table.turn().filter { if case .encodeSnapshot = $0 { true } else { false } }
      #expect(jobs.isEmpty == (name != "large"), "\(name)")
    }
  }

  @Test func `small parts are sent whole when much else has changed since`() {
    var table = Table()
    for number in 0..<100 { table.act(.set("\(number)", "a")) }
    let length = 60_000
    table.act(.set("large", String(repeating: "x", count: length)))
    let position = Position(epoch: 9, run: 1, revision: table.server.revision)
    let before = table.server.load.historyBytes
    for number in 0..<1000 { table.act(.set("busy", "change \(number)")) }
    let since = table.server.load.historyBytes - before
    #expect(since > Limits().inlineDifferenceBytes && since < length)
    let names = (0..<100).map { "\($0)" } + ["large"]
    for (number, name) in names.enumerated() {
      table.say(
        .subscribe(subscription: UInt64(number), [.integer(0), .text(name)], position))
    }
    var told: [ServerMessage.Subscribed] = []
    for _ in 0..<100 {
      for case .send(_, let frames) in table.turn() {
        for case .subscribed(let subscribed) in serverMessages(Array(frames.joined())) {
          told.append(subscribed)
        }
      }
    }
    #expect(told.count == 101)
    for subscribed in told {
      let isLarge = subscribed.subscription == 100
      #expect(subscribed.continuation == (isLarge ? .current : .snapshot))
      #expect(subscribed.reason == (isLarge ? .none : .history))
    }
  }

  @Test func `what is encoded to see that it is too much, is work of the client`() {
    // Each part is many texts and a long one, so that much is encoded before it is too much.
    var table = Table()
    let count = 40
    for number in 0..<count {
      table.act(
        .fill(
          "\(number)",
          [String](repeating: "some text", count: 3000) + [
            String(repeating: "x", count: 120_000)
          ]))
    }
    _ = table.turn()
    for number in 0..<count {
      table.say(
        .subscribe(subscription: UInt64(number), [.integer(1), .text("\(number)")], nil))
    }
    var most = 0
    var all = 0
    for _ in 0..<200 where all < count {
      let jobs = table.turn().filter { if case .encodeSnapshot = $0 { true } else { false } }
      most = max(most, jobs.count)
      all += jobs.count
      for case .encodeSnapshot(let id) in jobs { table.finish(id) }
    }
    #expect(all == count)
    // 30,000 bytes each are some 470 units of work, of 2,000 in a turn.
    #expect(most <= 8, "\(most) in one turn")
  }
}

private struct Rows: Reducer {
  @ObservableState struct State: Equatable {
    var rows: SyncMap<String, String> = [:]
    var lists: SyncMap<String, SyncArray<String>> = [:]
  }

  @Action enum Action: Equatable {
    case set(String, String)
    case fill(String, [String])
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .set(let key, let text): state.rows[key] = text
    case .fill(let key, let texts): state.lists[key] = SyncArray(texts)
    }
    return .none
  }
}

/// A server of rows, with one client.
private struct Table {
  var server = Server(
    Rows.State(), reducer: Rows(), seed: HashSeed(7), epoch: 9,
    at: Instant(nanoseconds: 1_000_000_000))
  private let now = Instant(nanoseconds: 1_000_000_000)

  init() {
    handle(.started(.first))
    handle(.opened(ConnectionID(1), Bench.peer, Bench.token(1)))
    say(.hello(.init(versions: 1...3, label: "table")))
    _ = turn()
  }

  @discardableResult
  private mutating func handle(_ event: Event<Rows.Action>) -> [Command] {
    var commands: [Command] = []
    server.handle(event, at: now, into: &commands)
    return commands
  }

  mutating func turn() -> [Command] { handle(.turnEnded) }

  mutating func say(_ message: ClientMessage) {
    handle(.received(ConnectionID(1), frame(message)))
  }

  mutating func act(_ action: Rows.Action) { handle(.acted(action)) }

  mutating func finish(_ id: SnapshotJobID) {
    guard let (frames, bytes) = server.snapshot(for: id)?.measured() else { return }
    handle(.snapshotEncoded(id, frames, wholeBytes: bytes))
  }
}
