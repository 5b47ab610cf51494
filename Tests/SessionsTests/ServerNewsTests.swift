import CBOR
import DaemonCore
import Lockstep
import Testing
import Values
import Wire

/// Records the actions of clients and the events of their sessions, in order.
private struct Diary: Reducer {
  struct State: SynchronizableScalar, Equatable {
    var lines: [String] = []

    func encode(into encoder: inout CBOREncoder) { encoder.encode(lines.joined(separator: "\n")) }
    init() {}
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      lines = [try decoder.text()]
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
  }

  enum Action: SynchronizableAction, SynchronizableScalar, Equatable {
    case write
    case hear(SessionEvent)

    var name: String { "\(self)" }
    func encode(into encoder: inout CBOREncoder) { encoder.encode(0) }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      _ = try decoder.unsigned()
      self = .write
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .unsigned }
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch (action, DependencyValues.current.origin) {
    case (.write, .client(let client)): state.lines.append("write \(client.session)")
    case (.hear(.ended(let session, let reason)), .owner):
      state.lines.append("\(reason) \(session)")
    case (.hear(.lost(let session)), .owner): state.lines.append("lost \(session)")
    case (.hear(.returned(let session)), .owner): state.lines.append("returned \(session)")
    default: state.lines.append("?")
    }
    return .none
  }

  var lifecycle: Lifecycle<State, Action> { .onSession { event, _ in [.hear(event)] } }
}

@Suite struct ServerNewsTests {
  /// A server with a diary, and the connections whose processes it has stopped watching.
  private struct Desk {
    var server: Server<Diary>
    var now = Instant(nanoseconds: 1_000_000_000)
    var unwatched: [UInt64] = []
    var isWoken = false

    init(limits: Limits = Limits()) {
      server = Server(
        Diary.State(), reducer: Diary(), seed: HashSeed(7), epoch: 9, limits: limits, at: now)
    }

    var lines: [String] { server.state.lines }

    mutating func handle(_ event: Event<Diary.Action>) {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      for command in commands {
        if case .unwatch(let id) = command { unwatched.append(id.rawValue) }
        if command == .wake { isWoken = true }
        // As a shell does.
        if case .close(let id) = command { handle(.closed(id)) }
      }
    }

    mutating func turn() {
      repeat {
        isWoken = false
        handle(.turnEnded)
      } while isWoken
    }

    /// Connects, and resumes the session of connection `old` if there is one.
    mutating func join(_ id: UInt64, as old: UInt64? = nil) {
      handle(.opened(ConnectionID(id), Bench.peer, Bench.token(id)))
      say(id, .hello(.init(versions: 1...1, label: "", token: old.map(Bench.token))))
    }

    mutating func say(_ id: UInt64, _ message: ClientMessage) {
      handle(.received(ConnectionID(id), frame(message)))
    }

    mutating func write(_ id: UInt64, number: UInt64) {
      say(id, .action(number: number, .applied, payload: [0]))
    }

    mutating func close(_ id: UInt64) { handle(.closed(ConnectionID(id))) }
    mutating func exit(_ id: UInt64) { handle(.exited(ConnectionID(id))) }
  }

  @Test func `a session is lost, resumed with its number, and ended after its grace`() {
    var desk = Desk()
    desk.join(1)
    desk.join(2)
    desk.write(2, number: 1)
    desk.close(1)
    #expect(desk.lines == ["write 2"])  // The state does not change until the turn's end.
    desk.turn()
    #expect(desk.lines == ["write 2", "lost 1"])
    desk.join(3, as: 1)
    desk.write(3, number: 1)
    desk.turn()
    #expect(desk.lines.dropFirst(2) == ["write 1", "returned 1"])
    #expect(desk.unwatched == [1])
    desk.close(3)
    desk.turn()
    desk.now = desk.now + .seconds(301)
    desk.handle(.tick)
    desk.turn()
    #expect(desk.lines.dropFirst(4) == ["lost 1", "graceOver 1"])
    #expect(desk.unwatched == [1, 3])
    desk.join(4, as: 1)
    desk.write(4, number: 1)
    desk.turn()
    #expect(desk.lines.last == "write 3")
  }

  @Test func `a process that ends after its connection ends its session at once`() {
    var desk = Desk()
    desk.join(1)
    desk.close(1)
    desk.turn()
    desk.exit(1)
    desk.turn()
    #expect(desk.lines == ["lost 1", "exited 1"])
    desk.now = desk.now + .seconds(301)
    desk.handle(.tick)
    desk.turn()
    #expect(desk.lines.count == 2 && desk.unwatched == [])
  }

  @Test func `a session lives until its connection ends, though its process has ended`() {
    var desk = Desk()
    desk.join(1)
    desk.exit(1)
    desk.write(1, number: 1)
    desk.turn()
    #expect(desk.lines == ["write 1"])
    desk.close(1)
    desk.turn()
    #expect(desk.lines == ["write 1", "exited 1"])
  }

  @Test func `a process may end before it says hello`() {
    var desk = Desk()
    desk.handle(.opened(ConnectionID(1), Bench.peer, Bench.token(1)))
    desk.exit(1)
    desk.say(1, .hello(.init(versions: 1...1, label: "")))
    desk.close(1)
    desk.turn()
    #expect(desk.lines == ["exited 1"] && desk.unwatched == [])
    desk.handle(.opened(ConnectionID(2), Bench.peer, Bench.token(2)))
    desk.close(2)
    desk.turn()
    #expect(desk.lines.count == 1 && desk.unwatched == [2])
  }

  @Test func `a session that ended with its process may be resumed, and hears of the end first`() {
    var desk = Desk()
    desk.join(1)
    desk.exit(1)
    desk.close(1)
    desk.join(2, as: 1)
    desk.write(2, number: 1)
    desk.turn()
    #expect(desk.lines == ["exited 1", "write 1", "returned 1"])
    desk.exit(2)
    desk.close(2)
    desk.turn()
    #expect(desk.lines.last == "exited 1" && desk.lines.count == 4)
  }

  @Test func `a goodbye ends a session, a replaced connection does not`() {
    var desk = Desk()
    desk.join(1)
    desk.join(2, as: 1)
    desk.turn()
    #expect(desk.lines == [] && desk.unwatched == [1])
    desk.exit(1)  // In flight when it was unwatched.
    desk.say(2, .goodbye(.done, ""))
    desk.turn()
    desk.exit(2)
    desk.turn()
    #expect(desk.lines == ["goodbye 1"] && desk.unwatched == [1, 2])
  }

  @Test func `above the limit of lost sessions the oldest ends`() {
    var limits = Limits()
    limits.detachedSessions = 1
    var desk = Desk(limits: limits)
    for id in [1, 2] as [UInt64] {
      desk.join(id)
      desk.close(id)
      desk.now = desk.now + .seconds(1)
    }
    desk.turn()
    #expect(desk.lines == ["lost 1", "lost 2", "graceOver 1"])
  }
}
