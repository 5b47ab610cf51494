import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

// What a contended action reserves: others wait for it where its client may write, and nowhere else, and
// for half a second at most or three times as long as it takes to work it out.
extension LargeActionTests {
  /// A bench in which others have changed what a transaction touches three times. Three others have one
  /// each to send: one that touches it, and two that do not.
  private func reserving(_ other: Bench? = nil, each time: Duration = .zero) -> Bench {
    var bench = other ?? bench([7, 8, 9, 9])
    bench.act(1, 1, Self.counting)
    _ = bench.handle(.turnEnded)
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(
        decoded(
          in: finish(1, in: &bench) {
            $0.act(2, number, .put("n", .integer(Int64(number + 2))))
            $0.pass(time)
          }) == [1])
    }
    return bench
  }

  @Test func `from the fourth time on what touches the same waits, and nothing else does`() {
    var bench = reserving()
    let done = finish(1, in: &bench) { bench in
      let put = ClientMessage.action(number: 4, .applied, payload: payload(.put("n", 6)))
      let held: [Command] = bench.say(2, put, .ping(9))
      #expect(held.contains(.pauseReading(ConnectionID(2))))
      bench.act(3, 1, .put("other", 1))
      bench.act(4, 1, .test(["n"], 5))
      let turn: [Command] = bench.handle(.turnEnded)
      #expect(bench.said(to: 2, turn).allSatisfy { if case .pong = $0 { false } else { true } })
      #expect(bench.said(to: 3, turn).contains(Acknowledgement.reduced(1, 1, at: 4)))
      // A held connection makes no turn by itself.
      #expect(!turn.contains(.wake))
      #expect(bench.server.state.root == ["n": 5, "other": 1])
    }
    #expect(decoded(in: done).isEmpty)
    #expect(bench.server.state.root == ["n": 305, "other": 1])
    #expect(done.contains(.wake))
    let next = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 6, "other": 1])
    #expect(next.contains(.resumeReading(ConnectionID(2))))
    let said = bench.said(to: 2, next)
    #expect(said.contains(Acknowledgement.reduced(4, 4, at: 6)))
    #expect(said.contains(.pong(9, revision: 6)))
    // The test waited for the transaction, too, and fails behind it.
    #expect(bench.said(to: 4, next).contains { "\($0)".contains("reject") })
  }

  /// A bench in which the client 1 may look at everything and write below `own`, and the client 2 may
  /// write everything. The client 1 has sent a transaction which reads a place and writes there.
  private func readingAndWriting(reading place: Path = ["n"]) -> Bench {
    let rules = [
      Rule(
        users: [7], mayConnect: true, read: [.whole], act: [.all], write: [PathPattern(["own"])]),
      Rule(users: [8], mayConnect: true, read: [.whole], act: [.all], write: [.whole]),
    ]
    var bench = Bench(
      ["n": 0, "own": ["count": 0]], limits: Self.limits, policy: Policy(rules))
    for (number, uid) in [(1, 7), (2, 8)] as [(UInt64, UInt64)] { bench.join(number, uid: uid) }
    let steps: [DocumentAction] = (1...300).map { .increment(["own", "count"], by: .integer($0)) }
    bench.act(1, 1, .transaction([.copy(from: place, to: ["own", "copy"])] + steps))
    _ = bench.handle(.turnEnded)
    return bench
  }

  /// Otherwise a client that may only read a place could block the clients that may write it.
  @Test(arguments: [["n"], []] as [Path])
  func `others do not wait where a transaction's client may only read`(place: Path) {
    var bench = readingAndWriting(reading: place)
    var commands: [Command] = []
    for number in 1...6 as ClosedRange<UInt64> {
      commands = finish(1, in: &bench) { bench in
        bench.act(2, number, .put("n", .integer(Int64(number))))
        #expect(bench.server.revision == number, "it does not wait")
      }
      #expect(decoded(in: commands) == (number < 6 ? [1] : []))
    }
    commands += bench.handle(.turnEnded)
    let rejections = bench.said(to: 1, commands).filter {
      "\($0)".contains("where you may not write: try again")
    }
    #expect(rejections.count == 1)
    #expect(bench.server.state.root == ["n": 6, "own": ["count": 0]])
  }

  @Test func `it is not rejected if it is where it may write that others were faster`() {
    var bench = readingAndWriting()
    for number in 1...6 as ClosedRange<UInt64> {
      let commands = finish(1, in: &bench) { bench in
        // The daemon's own actions wait for none.
        bench.handle(.acted(.increment(["own", "count"], by: 1000)))
      }
      #expect(decoded(in: commands) == (number < 6 ? [1] : []))
    }
    #expect(bench.server.state.root == ["n": 0, "own": ["copy": 0, "count": 51_150]])
    #expect(bench.server.revision == 7)
  }

  /// One that reads everything has nothing reserved if it may write nothing.
  @Test func `others do not wait for a transaction that may write nothing`() {
    let rules = [
      Rule(users: [7], mayConnect: true, read: [.whole], act: [.all], write: []),
      Rule(users: [8], mayConnect: true, read: [.whole], act: [.all], write: [.whole]),
    ]
    for place in [["n"], []] as [Path] {
      var bench = Bench(["n": 0], limits: Self.limits, policy: Policy(rules))
      for (number, uid) in [(1, 7), (2, 8)] as [(UInt64, UInt64)] { bench.join(number, uid: uid) }
      bench.act(
        1, 1, .transaction((1...300).map { _ in .test(place, place == [] ? ["n": 0] : 0) }))
      _ = bench.handle(.turnEnded)
      for number in 1...6 as ClosedRange<UInt64> {
        _ = finish(1, in: &bench) { bench in
          bench.act(2, number, .set([], ["n": .integer(Int64(number))]))
          #expect(bench.server.revision == number, "it does not wait")
        }
      }
    }
  }

  @Test func `they wait where it may write, whatever else it reads`() {
    var bench = readingAndWriting()
    for number in 1...3 as ClosedRange<UInt64> {
      let commands = finish(1, in: &bench) { bench in
        bench.act(2, number, .increment(["own", "count"], by: 1000))
      }
      #expect(decoded(in: commands) == [1])
      #expect(bench.server.revision == number)
    }
    let done = finish(1, in: &bench) { bench in
      bench.act(2, 4, .increment(["own", "count"], by: 1000))
      _ = bench.handle(.turnEnded)
      #expect(bench.server.revision == 3, "it waits")
    }
    #expect(decoded(in: done).isEmpty)
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 0, "own": ["copy": 0, "count": 49_150]])
    #expect(bench.server.revision == 5)
  }

  @Test func `what waits goes on if the transaction's client goes, or does not read`() {
    for isClosed in [true, false] {
      var bench = reserving()
      let id = ConnectionID(1)
      let job = bench.server.action(for: id)
      bench.act(2, 4, .put("n", 6))
      bench.act(3, 1, .put("n", 7))
      bench.handle(.closed(ConnectionID(3)))
      _ = bench.handle(.turnEnded)
      #expect(bench.server.state.root == ["n": 5])
      bench.handle(isClosed ? .closed(id) : .blocked(id, unsent: 1))
      bench.handle(.actionDecoded(id, job?.decoded()))
      _ = bench.handle(.turnEnded)
      _ = bench.handle(.turnEnded)
      #expect(bench.server.state.root == ["n": 6])
    }
  }

  @Test func `a transaction that reserved for half a second does not any more`() {
    var bench = reserving()
    let id = ConnectionID(1)
    let job = bench.server.action(for: id)
    bench.act(2, 4, .put("n", 6))
    bench.now = bench.now + .milliseconds(500)
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 5])
    bench.now = bench.now + .milliseconds(1)
    _ = bench.handle(.turnEnded)
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 6])
    bench.handle(.actionDecoded(id, job?.decoded()))
    #expect(decoded(in: bench.handle(.turnEnded)) == [1])
    #expect(decoded(in: finish(1, in: &bench) { $0.act(2, 5, .put("n", 7)) }) == [1])
    #expect(decoded(in: finish(1, in: &bench)).isEmpty)
    #expect(bench.server.state.root == ["n": 307])
  }

  @Test(arguments: [(200, 600), (1000, 3000), (60_000, 5000)])
  func `what is slow to work out reserves for three times as long as that took`(
    tried: Int, longest: Int
  ) {
    var bench = reserving(each: .milliseconds(tried))
    let id = ConnectionID(1)
    let job = bench.server.action(for: id)
    bench.act(2, 4, .put("n", 6))
    bench.now = bench.now + .milliseconds(longest)
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 5])
    bench.handle(.actionDecoded(id, job?.decoded()))
    // The transaction comes before what waited for it.
    for _ in 1...2 { _ = bench.handle(.turnEnded) }
    #expect(bench.server.state.root == ["n": 6])
  }

  @Test func `the half second begins once, however often it is worked out meanwhile`() {
    var bench = reserving()
    bench.act(2, 4, .put("n", 6))
    for _ in 1...2 {
      bench.now = bench.now + .milliseconds(300)
      // The daemon's own action waits for none.
      _ = finish(1, in: &bench) { $0.handle(.acted(.increment(["n"], by: 1))) }
    }
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 6])
  }

  @Test func `what will be rejected does not wait`() {
    let rules = [
      Rule(users: [7, 8], mayConnect: true, read: [.whole], act: [.all]),
      Rule(users: [9], mayConnect: true, read: [.whole]),
    ]
    var bench = Bench(["n": 0], limits: Self.limits, policy: Policy(rules))
    for (number, uid) in [(1, 7), (2, 8), (3, 9)] as [(UInt64, UInt64)] {
      bench.join(number, uid: uid)
    }
    bench = reserving(bench)
    bench.act(3, 1, .put("n", 9))
    #expect(bench.said(to: 3, bench.handle(.turnEnded)).contains { "\($0)".contains("reject") })
  }

  @Test func `a client that waits and does not read goes on when it reads`() {
    var bench = reserving()
    let id = ConnectionID(2)
    _ = finish(1, in: &bench) { bench in
      bench.act(2, 4, .put("n", 6))
      bench.handle(.blocked(id, unsent: 1))
    }
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 305])
    bench.handle(.drained(id))
    _ = bench.handle(.turnEnded)
    _ = bench.handle(.turnEnded)
    #expect(bench.server.state.root == ["n": 6])
  }
}
