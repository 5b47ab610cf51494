import BoardFeature
import CBOR
import DaemonCore
import Lockstep
import Testing
import Values
import Wire

/// Jumps of a state that has fields which do not travel back.
@Suite struct JumpFeatureTests {
  fileprivate struct Table<R: Reducer> {
    var server: Server<R>
    let now = Instant(nanoseconds: 1_000_000_000)
    private var actions: [UInt64: UInt64] = [:]

    /// A daemon with a client, which may do everything, and after its actions the first checkpoint.
    init(_ state: R.State, _ reducer: R, _ actions: R.Action...) {
      server = Server(state, reducer: reducer, seed: HashSeed(7), epoch: 9, at: now)
      handle(.started(.first))
      open(1)
      for action in actions { act(1, action) }
      handle(.stateMeasured(StateMeasure(of: server.state)))
      handle(.tick)
      var encoder = CBOREncoder()
      server.state.encode(into: &encoder)
      handle(.checkpointMade(server.revision, encoder.bytes))
    }

    @discardableResult
    mutating func handle(_ event: Event<R.Action>) -> [Command] {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      return commands
    }

    mutating func say(_ client: UInt64, _ message: ClientMessage) {
      handle(.received(ConnectionID(client), frame(message)))
    }

    mutating func open(_ client: UInt64) {
      handle(.opened(ConnectionID(client), Bench.peer, Bench.token(client)))
      say(client, .hello(.init(versions: 1...3, label: "table")))
      handle(.turnEnded)
    }

    mutating func act(_ client: UInt64, _ action: R.Action) {
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      actions[client, default: 0] += 1
      say(
        client,
        .action(number: actions[client] ?? 0, .applied, payload: encoder.bytes))
      handle(.turnEnded)
    }

    /// Have the shell find the change of a jump. `tell` hands it to the server.
    mutating func ask(_ name: String, _ arguments: String...) -> Event<R.Action>? {
      say(1, .query(number: 7, name, arguments: arguments))
      for _ in 0..<30 {
        for case .answer(let id, let query, let asked) in handle(.turnEnded) {
          if case .success(let job)? = server.inspection(of: asked, for: id) {
            return job.finding().event(for: id, query: query)
          }
        }
      }
      return nil
    }
  }

  @Test(arguments: ["undo", "jump"])
  func `who comes or goes while a jump is prepared has come or gone`(name: String) throws {
    var table = Table(Board.State(), Board(), .addCard("milk"))
    let target = table.server.revision
    table.act(1, .addCard("eggs"))
    table.enter(2, "Bob")
    table.enter(3, "Cleo")
    #expect(table.cards == [1, 2] && table.names == ["Bob", "Cleo"])
    let asked = table.ask(name, name == "undo" ? "1" : "\(target)")
    let found = try #require(asked)
    table.say(2, .goodbye(.done, "done"))
    table.handle(.turnEnded)
    table.handle(.closed(ConnectionID(2)))
    table.handle(.turnEnded)
    table.enter(4, "Dora")
    #expect(table.names == ["Cleo", "Dora"])
    let before = table.server.revision
    table.handle(found)
    table.handle(.turnEnded)
    #expect(table.server.revision == before + 1)
    #expect(table.cards == [1] && table.names == ["Cleo", "Dora"])
  }

  @Test func `what changes fields alone that do not travel back is no step of undo`() throws {
    var table = Table(Board.State(), Board(), .addCard("milk"))
    table.act(1, .addCard("eggs"))
    table.enter(2, "Bob")
    for expected in [[1], [1, 2]] {
      let asked = table.ask(expected.count == 1 ? "undo" : "redo")
      let found = try #require(asked)
      table.handle(found)
      table.handle(.turnEnded)
      #expect(table.cards == expected && table.names == ["Bob"])
      // It is still to be redone when somebody else has come.
      table.enter(2 + UInt64(expected.count), "Ann \(expected.count)")
      #expect(table.names.count == 2)
      table.say(2 + UInt64(expected.count), .goodbye(.done, "done"))
      table.handle(.turnEnded)
      table.handle(.closed(ConnectionID(2 + UInt64(expected.count))))
      table.handle(.turnEnded)
    }
  }

  /// What mirrors get of it is what a difference has: its ephemeral fields begin anew with it.
  @Test func `an optional part that comes back is sent with its ephemeral fields`() throws {
    var table = Table(Desk(), DeskFeature(), .add)
    table.say(1, .subscribe(subscription: 1, .root, nil))
    for case .encodeSnapshot(let id) in table.handle(.turnEnded) {
      let job = try #require(table.server.snapshot(for: id))
      table.handle(.snapshotEncoded(id, job.measured().frames, wholeBytes: nil))
    }
    table.handle(.turnEnded)
    let target = table.server.revision
    table.act(1, .remove)
    let before = table.server.state
    #expect(before.lamp == nil)
    let asked = table.ask("jump", "\(target)")
    let found = try #require(asked)
    guard case .changeFound(let id, let query, let change) = found else {
      Issue.record("no change was found: \(found)")
      return
    }
    var replayed = table
    table.handle(found)
    replayed.handle(.answered(id, query: query, Finding.change(change).report))
    #expect(table.server.state.lamp == Desk.Lamp() && table.server.state == replayed.server.state)
    var expected = CBOREncoder()
    _ = table.server.state.encodeDifference(from: before, into: &expected)
    let commands = table.handle(.turnEnded)
    #expect(commands == replayed.handle(.turnEnded))
    let sent = commands.flatMap { command -> [UInt8] in
      if case .send(_, let frames) = command { Array(frames.joined()) } else { [] }
    }
    #expect(sent.firstRange(of: expected.bytes) != nil)
  }
}

extension JumpFeatureTests.Table<Board> {
  mutating func enter(_ client: UInt64, _ name: String) {
    open(client)
    act(client, .hands(.enter(Hand(name: name))))
  }

  var cards: [Int] { server.state.columns[id: "todo"]?.cards.map(\.id) ?? [] }
  var names: [String] { server.state.hands.map(\.entry.name).sorted() }
}

@ObservableState
private struct Desk: Equatable {
  var lamp: Lamp?

  @ObservableState
  struct Lamp: Equatable {
    var level = 1
    @Ephemeral var heat = 5
  }
}

private struct DeskFeature: Reducer {
  @Action enum Action: Equatable {
    case add
    case remove
  }

  func reduce(into state: inout Desk, action: Action) -> Effect<Action> {
    state.lamp = action == .add ? Desk.Lamp() : nil
    return .none
  }
}
