import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// A digest behind large changes is computed beside the loop, and the clients that ask for it wait.
@Suite struct DigestJobTests {
  /// Clients of one daemon that mirror all of it, and computes digests only when told.
  private func bench(_ clients: UInt64, durability: Durability = .none) -> Bench {
    var limits = Limits()
    limits.journalDigestChanges = 1
    var bench = Bench(limits: limits, durability: durability)
    for client in 1...clients {
      bench.join(client, versions: 2...2)
      bench.say(client, .subscribe(subscription: 1, .root, nil))
    }
    _ = bench.settle()
    bench.computesDigests = false
    return bench
  }

  /// Change more than a digest on the loop may be behind.
  private func change(_ number: UInt64, _ bench: inout Bench) -> [Command] {
    let text = String(repeating: number % 2 == 0 ? "x" : "y", count: 9000)
    bench.act(1, number, .put("text", .text(text)))
    return bench.turn()
  }

  private func digests(_ messages: [ServerMessage]) -> [Digest?] {
    messages.compactMap { if case .digest(_, _, let digest) = $0 { .some(digest) } else { nil } }
  }

  @Test func `behind little it is answered at once`() {
    var bench = bench(1)
    bench.act(1, 1, .put("n", 5))
    bench.say(1, .digestRequest(subscription: 1))
    #expect(digests(bench.said(to: 1, bench.turn())) == [bench.server.digest()])
    #expect(bench.digests == 0)
  }

  @Test func `clients wait for one that is computed, with what they ask behind it`() {
    var bench = bench(4)
    _ = change(1, &bench)
    for client in [2, 3] as [UInt64] {
      bench.say(client, .digestRequest(subscription: 1), .ping(client))
    }
    bench.say(4, .ping(4))
    var commands = bench.turn()
    #expect(bench.said(to: 2, commands) + bench.said(to: 3, commands) == [])
    #expect(bench.said(to: 4, commands) == [.pong(4, revision: 1)])
    #expect(bench.digests == 1)
    // Meanwhile nothing asks for further turns.
    #expect(!bench.turn().contains(.wake))
    bench.act(1, 2, .put("n", 7))
    _ = bench.turn()
    commands = bench.computeDigest()
    for client in [2, 3] as [UInt64] {
      #expect(
        bench.said(to: client, commands) == [
          .digest(subscription: 1, revision: 2, bench.server.digest()),
          .pong(client, revision: 2),
        ])
    }
    #expect(bench.digests == 0)
  }

  @Test func `while more and more changes there is none, and no turn computes it`() {
    var bench = bench(2)
    _ = change(1, &bench)
    bench.say(2, .digestRequest(subscription: 1), .query(number: 9, "status"))
    _ = bench.turn()
    var said: [ServerMessage] = []
    var number = 2 as UInt64
    while said.isEmpty, number < 20 {
      #expect(bench.digests == 1)
      _ = change(number, &bench)
      number += 1
      said = bench.said(to: 2, bench.computeDigest()).filter { digests([$0]) == [nil] }
    }
    #expect(number < 10 && !said.isEmpty)
    // The report comes without one, too.
    var status: Value?
    while status == nil, number < 40 {
      _ = change(number, &bench)
      number += 1
      for case .report(9, let value, _) in bench.said(to: 2, bench.computeDigest()) {
        status = value
      }
    }
    #expect(status?.value(at: ["digest"]) == .null)
    // When it is calm, it is there.
    bench.say(2, .digestRequest(subscription: 1))
    _ = bench.turn()
    #expect(digests(bench.said(to: 2, bench.computeDigest())) == [bench.server.digest()])
  }

  @Test func `a connection that ends while it waits is forgotten`() {
    var bench = bench(2)
    _ = change(1, &bench)
    bench.say(2, .digestRequest(subscription: 1))
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(2)))
    _ = bench.turn()
    #expect(bench.said(to: 2, bench.computeDigest()) == [])
    bench.handle(.digestComputed)
    #expect(!bench.turn().contains(.wake))
  }

  @Test func `a goodbye comes behind the digest that was asked for before it`() {
    var bench = bench(2)
    _ = change(1, &bench)
    bench.say(2, .digestRequest(subscription: 1), .goodbye(.done, ""))
    #expect(bench.said(to: 2, bench.turn()) == [])
    let said = bench.said(to: 2, bench.computeDigest())
    #expect(digests(said) == [bench.server.digest()] && said.count == 2)
  }

  @Test func `the journal gets the next one that is at hand`() {
    var bench = bench(1, durability: .sync)
    func batch(_ commands: [Command]) -> JournalBatch? {
      for case .keep(let batch) in commands { return batch }
      return nil
    }
    let large = batch(change(1, &bench))
    #expect(large != nil && large?.digest == nil)
    #expect(bench.digests == 1)
    bench.act(1, 2, .put("n", 5))
    #expect(batch(bench.turn())?.digest == nil)
    #expect(bench.digests == 1, "one is being computed")
    _ = bench.computeDigest()
    bench.act(1, 3, .put("n", 6))
    #expect(batch(bench.turn())?.digest == bench.server.digest())
  }
}
