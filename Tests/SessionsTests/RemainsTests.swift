import DaemonCore
import Documents
import Testing
import Wire

@testable import Values

/// Large values that an action drops are given to the owner of the server, to be released elsewhere.
@Suite struct RemainsTests {
  /// A map whose release would take long.
  private static let large = Value.object(
    TrieMap(uniqueKeysWithValues: (0...Remains.worthwhile).map { ("\($0)", .integer(1)) }))

  /// Knows whether the map at a path is still in memory.
  private struct Watch {
    private weak var node: TrieNode<String, Value>?

    init(_ value: Value?) {
      if case .object(let entries)? = value { node = entries.root }
    }

    var isAlive: Bool { node != nil }
  }

  private func bench(
    _ root: Value, limits: Limits = Limits()
  ) -> (bench: Bench, watch: Watch) {
    var bench = Bench(root, limits: limits)
    bench.server.keepRemains()
    bench.join(1)
    _ = bench.server.takeRemains()
    return (bench, Watch(bench.server.state.root.value(at: ["map"])))
  }

  @Test(
    "a large value that an action drops dies with the remains, and nowhere else",
    arguments: [
      .remove(["map"]), .set(["map"], 1), .set([], [:]), .replace(["map"], [:]),
      .merge([], ["map": nil]),
      .transaction([.set(["other"], 2), .remove(["map"])]),
    ] as [DocumentAction])
  func dropped(action: DocumentAction) {
    var (bench, watch) = bench(["map": Self.large, "other": 1])
    bench.act(1, 1, action)
    _ = bench.turn()
    #expect(bench.server.revision == 1)
    var remains = bench.server.takeRemains()
    #expect(watch.isAlive && !remains.isEmpty)
    remains = Remains()
    #expect(!watch.isAlive)
  }

  @Test("an element of an array, and what is large only as a whole, too")
  func nested() {
    let parts = Value.array(
      TreeArray((0..<100).map { _ in ["map": .array(TreeArray((0..<20).map { .integer($0) }))] }))
    var (bench, _) = bench(["list": [["map": Self.large], 1], "parts": parts])
    let watch = Watch(bench.server.state.root.value(at: ["list", "0", "map"]))
    bench.act(1, 1, .set(["list", "0"], 2))
    _ = bench.turn()
    var remains = bench.server.takeRemains()
    #expect(watch.isAlive)
    remains = Remains()
    #expect(!watch.isAlive)
    bench.act(1, 2, .remove(["parts"]))
    _ = bench.turn()
    remains = bench.server.takeRemains()
    #expect(!remains.isEmpty)
  }

  @Test("what a rejected action had brought is left with the action")
  func rejected() {
    var (bench, _) = bench(["map": 1])
    bench.act(1, 1, .transaction([.set(["map"], Self.large), .test(["map"], 2)]))
    _ = bench.turn()
    #expect(bench.server.state.root == ["map": 1])
    // The message is shorter than the value in memory, and yet longer than small actions are.
    #expect(payload(.set(["map"], Self.large)).count < 16 << 10)
    #expect(bench.server.takeRemains().isEmpty)
    let text = Value.text(String(repeating: "x", count: 16 << 10))
    bench.act(1, 2, .transaction([.set(["map"], [text]), .test(["map"], 2)]))
    _ = bench.turn()
    #expect(!bench.server.takeRemains().isEmpty)
  }

  @Test("a state that was held for a mirror dies with the remains")
  func held() {
    var (bench, watch) = bench(["map": Self.large])
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    _ = bench.server.takeRemains()
    bench.handle(.blocked(ConnectionID(1), unsent: 1))
    bench.server.act(.remove(["map"]))
    _ = bench.turn()
    // The mirror may still need it.
    _ = bench.server.takeRemains()
    #expect(watch.isAlive)
    bench.handle(.drained(ConnectionID(1)))
    _ = bench.turn()
    var remains = bench.server.takeRemains()
    #expect(watch.isAlive && !remains.isEmpty)
    remains = Remains()
    #expect(!watch.isAlive)
  }

  @Test("a state of which a snapshot was made dies with the remains")
  func encoded() {
    var (bench, watch) = bench(["map": Self.large], limits: Bench.besideLoop)
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    let jobs = bench.turn().compactMap { command -> SnapshotJobID? in
      if case .encodeSnapshot(let id) = command { id } else { nil }
    }
    bench.server.act(.remove(["map"]))
    _ = bench.turn()
    _ = bench.server.takeRemains()
    #expect(jobs.count == 1 && watch.isAlive)
    for job in jobs { bench.encode(job) }
    _ = bench.settle()
    var remains = bench.server.takeRemains()
    #expect(watch.isAlive && !remains.isEmpty)
    remains = Remains()
    #expect(!watch.isAlive)
  }

  @Test("small values are released at once, and so is everything for who does not ask")
  func small() {
    var (bench, _) = bench(["map": ["a": 1, "b": [1, 2, 3]], "n": 1])
    for (number, action) in [
      DocumentAction.set(["n"], 2), .set(["map", "a"], ["c": 2]), .remove(["map"]),
      .transaction([.set(["n"], 3), .set(["m"], 3)]), .set([], [:]),
    ].enumerated() {
      bench.act(1, UInt64(number) + 1, action)
      _ = bench.turn()
      #expect(bench.server.takeRemains().isEmpty, "\(action)")
    }
    var other = Bench(["map": Self.large])
    let watch = Watch(other.server.state.root.value(at: ["map"]))
    other.server.act(.remove(["map"]))
    #expect(!watch.isAlive)
    _ = other.turn()
    #expect(other.server.takeRemains().isEmpty)
  }
}
