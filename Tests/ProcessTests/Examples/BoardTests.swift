import BoardFeature
import Foundation
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

/// `boardd`, and its client, driven by keys.
@Suite("Board", .enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct BoardProcessTests {
  private func withBoard(
    _ cards: String..., body: (ServedExample, MirrorStore<Board>) async throws -> Void
  ) async throws {
    try await withExample("boardd") { _ in
      []
    } _: { served in
      let board = try await MirrorStore.connect(
        optimistic: Board(), .init(socket: served.socket))
      for title in cards { try await board.send(.addCard(title)) }
      try await body(served, board)
      await board.connection.finish()
    }
  }

  private func ids(_ column: String, of board: MirrorStore<Board>) -> [Int] {
    board.state.columns[id: column]?.cards.map(\.id) ?? []
  }

  @Test func `the board is shown, and errors are told`() async throws {
    try await withBoard("milk", "eggs") { served, board in
      let shown = try await served.run("board", "move", "2", "done")
      #expect(
        shown.lines == [
          "todo                      doing                     done",
          "------------------------  ------------------------  ------------------------",
          " 1 milk                                              2 eggs",
        ])
      let refused = try await served.run("board", "move", "7", "done")
      #expect(refused.status == .exit(1))
      #expect(refused.lines == ["Error: rejected: there is no card 7"])
      try await eventually("the mirror has it") { self.ids("done", of: board) == [2] }
    }
  }

  @Test func `five clients drag cards about, and all mirrors are the daemon's`() async throws {
    try await withBoard("a", "b", "c", "d", "e", "f") { served, board in
      let mirrors = try await withThrowingTaskGroup(of: MirrorStore<Board>.self) { group in
        for number in 0..<5 {
          group.addTask { [socket = served.socket] in
            let mirror = try await MirrorStore.connect(
              optimistic: Board(), .init(socket: socket))
            var random = SplitMix64(UInt64(number))
            for _ in 0..<200 {
              let card = Int(random.next() % 6) + 1
              let column = ["todo", "doing", "done"][Int(random.next() % 3)]
              let row = Int(random.next() % 6)
              let action = Board.Action.moveCard(card, column: column, row: row, by: "\(number)")
              mirror.post(action, .optimistic)
              // What shows is a board with every card, once.
              let shown = mirror.state.columns.flatMap { $0.cards.map(\.id) }
              guard shown.sorted() == Array(1...6) else { throw WrongBoard(cards: shown) }
            }
            try await mirror.send(.moveCard(1, column: "todo", row: 0, by: "\(number)"))
            return mirror
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      try await board.send(.addCard("end"))
      for mirror in mirrors {
        try await eventually("the mirror has all") { mirror.state.lastCard == 7 }
        #expect(mirror.pending.isEmpty && mirror.state.columns == board.state.columns)
        let daemon = try await mirror.subscription.nextDaemonDigest()
        #expect(daemon.digest == mirror.subscription.digest)
        await mirror.connection.finish()
      }
    }
  }

  @Test func `five processes drag cards about at once, and each draws the daemon's board`()
    async throws
  {
    try await withBoard("a", "b", "c", "d", "e") { served, board in
      let players = try (1...5).map { try served.start("board", "live", "--name", "P\($0)") }
      defer { for player in players { player.signal(SIGKILL) } }
      try await eventually("all are seen") { board.state.hands.sessionCount == 5 }
      for (number, player) in players.enumerated() {
        // Down to a card of its own, which it takes.
        player.write(String(repeating: "j", count: number) + " ")
      }
      try await eventually("each holds its card") {
        Set(board.confirmed.hands.compactMap(\.entry.card)) == [1, 2, 3, 4, 5]
      }
      // All at once, each on a way of its own, at whose end it puts its card down.
      for (number, player) in players.enumerated() {
        var random = SplitMix64(UInt64(number))
        let way = (0..<100).map { _ in ["h", "j", "k", "l"][Int(random.next() % 4)] }
        player.write(way.joined() + " ")
      }
      try await eventually("each has put its card down") {
        board.confirmed.hands.allSatisfy { $0.entry.card == nil }
      }
      #expect(self.ids("todo", of: board) != [1, 2, 3, 4, 5])
      let cards = board.confirmed.columns.flatMap { $0.cards.map(\.id) }
      #expect(cards.sorted() == [1, 2, 3, 4, 5], "every card, once")
      let shown = try await served.run("board", "add", "end").lines
      #expect(shown.last == "here: P1, P2, P3, P4, P5")
      for player in players {
        try await eventually("its last picture is that of the daemon's board") {
          let lines = player.output
          // An empty line ends a picture, in which a mark is at its own card.
          return lines.last == ""
            && lines.dropLast().suffix(shown.count).map { $0.replacing(">", with: " ") } == shown
        }
      }
    }
  }

  @Test func `a card that is moved in its column does not travel again`() async throws {
    try await withBoard("a", "b", "c") { served, board in
      let proxy = try ForwardingProxy(at: served.folder + "/proxy", to: served.socket)
      defer { proxy.close() }
      let mirror = try await MirrorStore<Board>.connect(.init(socket: proxy.path))
      try await mirror.send(.addCard("a title of some length"))
      let before = proxy.count(of: "a title of some length")
      #expect(before == 2, "in the action, and in the patch")
      try await mirror.send(.moveCard(4, column: "todo", row: 0))
      #expect(self.ids("todo", of: mirror) == [4, 1, 2, 3])
      #expect(proxy.count(of: "a title of some length") == before)
      await mirror.connection.finish()
    }
  }

  private struct WrongBoard: Error {
    let cards: [Int]
  }

  @Test func `a jump brings back the cards, and sends nobody away`() async throws {
    try await withBoard("milk") { served, board in
      let connection = board.connection
      func jump(_ name: String, _ argument: String) async throws {
        let report = try await connection.report(name, arguments: [argument])
        let revision = try #require(report["revision"]?.number, "\(report)")
        try await board.subscription.reached(revision: UInt64(revision))
      }
      // The past begins with the first checkpoint, within a second or two.
      try await eventually("there is a past") {
        try await connection.report("changes")["changes"] != nil
      }
      let start = try #require(board.subscription.position).revision
      try await board.send(.addCard("eggs"))
      let ann = try served.start("board", "live", "--name", "Ann")
      try await eventually("she is seen") { board.state.hands.sessionCount == 1 }
      try await jump("jump", "\(start)")
      #expect(self.ids("todo", of: board) == [1])
      #expect(board.state.hands.sessionCount == 1)
      // Her coming is no change that could be undone.
      for expected in [[1, 2], [1]] {
        try await jump("undo", "1")
        #expect(self.ids("todo", of: board) == expected)
        #expect(board.state.hands.sessionCount == 1)
      }
      ann.signal(SIGKILL)
    }
  }

  @Test func `a killed player's card is free at once`() async throws {
    try await withBoard("milk") { served, board in
      let ann = try served.start("board", "live", "--name", "Ann")
      try await eventually("she is seen") { board.state.hands.sessionCount == 1 }
      ann.write(" ")
      try await eventually("she holds it") {
        board.confirmed.hands.map(\.entry) == [Hand(name: "Ann", card: 1)]
      }
      await #expect(throws: ClientError.self) {
        try await board.send(.moveCard(1, column: "done"), .optimistic)
      }
      #expect(self.ids("todo", of: board) == [1])
      ann.signal(SIGKILL)
      try await eventually("she is gone") { board.state.hands.isEmpty }
      try await board.send(.moveCard(1, column: "done"), .optimistic)
      #expect(self.ids("done", of: board) == [1])
    }
  }
}
