import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// The bytes that one small change takes on the wire, with its frame (11 bytes with many changes, 10 with
/// one), in a state whose keys are numbers and in one whose keys are names.
@Suite struct PatchBytesTests {
  @ObservableState struct Todo: Equatable {
    var title = ""
    var isDone = false
  }

  struct Todos: Reducer {
    @ObservableState struct State: Equatable {
      var items: SyncMap<Int, Todo> = [:]
    }

    @Action enum Action: Equatable, Sendable { case toggle(Int) }

    func reduce(into state: inout State, action: Action) -> Effect<Action> {
      switch action {
      case .toggle(let id): state.items[id, default: Todo()].isDone.toggle()
      }
      return .none
    }
  }

  /// A server with a mirror of the whole state, and a writer.
  private struct Table<R: Reducer> {
    var server: Server<R>
    let now = Instant(nanoseconds: 1_000_000_000)
    var number: UInt64 = 0

    init(_ reducer: R, _ state: R.State) {
      // Revisions of two bytes, as they mostly are.
      server = Server(
        state, reducer: reducer, seed: HashSeed(7), epoch: 9, revision: 1_000, limits: Limits(),
        at: now)
      for id in 1...2 as ClosedRange<UInt64> {
        _ = handle(.opened(ConnectionID(id), Bench.peer, Bench.token(id)))
        _ = say(id, .hello(.init(versions: 1...1, label: "")))
      }
      _ = say(1, .subscribe(subscription: 1, .root, nil))
      while turn() > 0 {}
    }

    private mutating func handle(_ event: Event<R.Action>) -> [Command] {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      return commands
    }

    private mutating func say(_ id: UInt64, _ message: ClientMessage) -> [Command] {
      handle(.received(ConnectionID(id), frame(message)))
    }

    mutating func send(_ action: R.Action) {
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      number += 1
      _ = say(2, .action(number: number, .applied, payload: encoder.bytes))
    }

    /// End a turn. Returns the bytes that the mirror gets.
    mutating func turn() -> Int {
      handle(.turnEnded).reduce(0) { sum, command in
        guard case .send(ConnectionID(1), let frames) = command else { return sum }
        return sum + frames.reduce(0) { $0 + $1.count }
      }
    }
  }

  @Test func `of a typed state one boolean takes 19 bytes alone, and 9 with others of its turn`() {
    var table = Table(Todos(), Todos.State())
    for id in 0..<100 { table.send(.toggle(100 + id)) }
    _ = table.turn()
    table.send(.toggle(142))
    #expect(table.turn() == 19)
    for id in 0..<100 { table.send(.toggle(100 + id)) }
    #expect(table.turn() == 9 * 100 + 11)
  }

  @Test func `of a document, whose keys are names, it takes 30, and 20`() {
    let items = (100..<200).map { ("\($0)", ["done": false] as Value) }
    var table = Table(
      DocumentFeature(), Document(["todos": .object(TrieMap(uniqueKeysWithValues: items))]))
    table.send(.set(["todos", "142", "done"], true))
    #expect(table.turn() == 30)
    for (id, _) in items { table.send(.set(["todos", .text(id), "done"], .bool(id != "142"))) }
    #expect(table.turn() == 20 * 100 + 11)
  }
}
