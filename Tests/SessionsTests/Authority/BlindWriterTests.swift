import Access
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// A client that may write a place, but not read it, learns nothing about its value.
///
/// If outcomes depended on the old value, 63 requests would reveal a number: a transaction with an
/// increment that overflows is rejected for half of the numbers, and so on.
@Suite struct BlindWriterTests {
  private static let policy = Policy([
    Rule(
      isForEveryone: true, mayConnect: true, read: patterns(["public"]), act: [.all],
      write: patterns(["public", "secret"]))
  ])

  private static let secrets: [Value] = [
    ["public": [:]], ["public": [:], "secret": nil], ["public": [:], "secret": true],
    ["public": [:], "secret": 1], ["public": [:], "secret": -7], ["public": [:], "secret": 1.5],
    ["public": [:], "secret": .integer(.max)], ["public": [:], "secret": "hush"],
    ["public": [:], "secret": []], ["public": [:], "secret": [1, 2, 3]],
    ["public": [:], "secret": ["a": 1]], ["public": [:], "secret": ["a": ["b": "c"]]],
  ]

  /// Every kind of action on the hidden place, alone, and in transactions that would reveal whether
  /// it succeeded.
  private static let probes: [DocumentAction] = {
    let place: Path = ["secret"]
    var probes: [DocumentAction] = []
    for path in [place, ["secret", "a"], ["secret", "a", "b"], ["secret", 0], ["secret", "-"]] {
      for value in [nil, true, 1, -7, "hush", [], ["a": 1]] as [Value] {
        probes += [
          .set(path, value), .replace(path, value), .merge(path, value), .append(path, value),
          .insert(path, value), .test(path, value),
        ]
      }
      probes += [.remove(path), .move(from: path, to: ["public", "x"])]
      probes += [.copy(from: path, to: ["public", "x"]), .copy(from: ["public"], to: path)]
      probes += [.move(from: ["public"], to: path)]
    }
    for bit in 0..<63 { probes.append(.increment(place, by: .integer(1 << Int64(bit)))) }
    return probes + probes.map { .transaction([.set(["public", "seen"], 1), $0]) }
  }()

  private func said(_ secret: Value) -> [ServerMessage] {
    var bench = Bench(secret, policy: Self.policy)
    bench.join(1)
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    var said = bench.said(to: 1, bench.settle())
    for (index, probe) in Self.probes.enumerated() {
      bench.act(1, UInt64(index) + 1, probe)
      said += bench.said(to: 1, bench.settle())
    }
    #expect(bench.server.state.root == secret)
    return said
  }

  @Test func `the replies to a blind writer do not depend on the hidden value`() {
    let first = said(Self.secrets[0])
    #expect(first.count > Self.probes.count)
    for secret in Self.secrets.dropFirst() { #expect(said(secret) == first, "\(secret)") }
  }
}
