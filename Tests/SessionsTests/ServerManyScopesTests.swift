import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// With more than a few scopes the server finds those that a patch touches in a tree of paths.
@Suite struct ServerManyScopesTests {
  private static let paths: [Path] = [
    [], ["a"], ["a", "x"], ["a", "x", "deep"], ["a", "y"], ["b"], ["b", "x"], ["c"], ["c", 1],
    ["e\u{301}"], ["\u{e9}"],
  ]

  /// One connection for each path; all of them have their snapshots.
  private static func bench() -> Bench {
    var bench = Bench(["a": ["x": ["deep": 1], "y": 2], "b": 3, "c": [0, 1]])
    for index in paths.indices { _ = bench.join(UInt64(index + 1)) }
    for (index, path) in paths.enumerated() {
      bench.say(UInt64(index + 1), .subscribe(subscription: 1, path, nil))
    }
    _ = bench.settle()
    return bench
  }

  /// The paths whose subscribers get a patch when the first connection sends this action.
  private func told(_ action: DocumentAction, _ bench: inout Bench) -> [Path] {
    bench.act(1, bench.server.revision + 1, action)
    let commands = bench.turn()
    return Self.paths.enumerated().compactMap { index, path in
      let patches = bench.said(to: UInt64(index + 1), commands).filter {
        if case .patch = $0 { true } else { false }
      }
      #expect(patches.count <= 1)
      return patches.isEmpty ? nil : path
    }
  }

  @Test func `a patch reaches the scopes above and below its paths, and no others`() {
    var bench = Self.bench()
    #expect(
      told(.set(["a", "x", "deep"], 5), &bench) == [[], ["a"], ["a", "x"], ["a", "x", "deep"]])
    #expect(told(.set(["a", "y"], 5), &bench) == [[], ["a"], ["a", "y"]])
    #expect(told(.set(["b"], ["x": 1]), &bench) == [[], ["b"], ["b", "x"]])
    #expect(told(.set(["c", 1], 9), &bench) == [[], ["c"]])
    #expect(told(.set(["other"], 9), &bench) == [[]])
  }

  @Test func `a replaced root reaches the scopes that have or had a value`() {
    var bench = Self.bench()
    #expect(
      told(.set([], ["b": 4]), &bench) == [
        [], ["a"], ["a", "x"], ["a", "x", "deep"], ["a", "y"], ["b"], ["c"],
      ])
    #expect(told(.set([], 4), &bench) == [[], ["b"]])
  }

  @Test func `paths equal as text but not as bytes are two scopes`() {
    var bench = Self.bench()
    #expect(told(.set(["e\u{301}"], 1), &bench) == [[], ["e\u{301}"]])
    #expect(told(.set(["\u{e9}"], 1), &bench) == [[], ["\u{e9}"]])
  }

  @Test func `a scope without subscribers gets no patches`() {
    var bench = Self.bench()
    bench.handle(.closed(ConnectionID(3)))
    bench.say(4, .unsubscribe(subscription: 1))
    _ = bench.turn()
    #expect(told(.set(["a", "x", "deep"], 5), &bench) == [[], ["a"]])
    bench.say(4, .subscribe(subscription: 2, ["a", "x", "deep"], nil))
    _ = bench.settle()
    #expect(told(.set(["a", "x", "deep"], 6), &bench) == [[], ["a"], ["a", "x", "deep"]])
  }
}
