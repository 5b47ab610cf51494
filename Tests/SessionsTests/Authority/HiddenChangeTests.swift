import Access
import DaemonCore
import Documents
import Testing
import Values
import Wire

/// "A change of a hidden part brings no patch" (`Protocols/wire.md`).
@Suite struct HiddenChangeTests {
  /// User 1 sees the map, and neither of two of its entries.
  private static let policy = Policy([
    Rule(users: [0], mayConnect: true, read: [.whole], act: [.all], write: [.whole]),
    Rule(
      users: [1], mayConnect: true, read: [.whole], denyRead: patterns(["map/a", "map/b"])),
  ])

  /// User 0 sees all and acts. Both mirror the whole document and the map.
  private func bench(_ map: Value) -> Bench {
    var bench = Bench(["map": map], policy: Self.policy)
    for uid in [0, 1] as [UInt64] {
      bench.join(uid, uid: uid)
      bench.say(
        uid, .subscribe(subscription: 1, [], nil), .subscribe(subscription: 2, ["map"], nil))
    }
    _ = bench.settle()
    return bench
  }

  @Test(
    "a client that may not see the entries of a map is not told that the map was emptied",
    arguments: [
      [.set(["map"], [:])],
      [.set([], ["map": [:]])],
      [.remove(["map", "a"]), .remove(["map", "b"])],
      [.transaction([.remove(["map", "a"]), .remove(["map", "b"])])],
    ] as [[DocumentAction]])
  func emptied(actions: [DocumentAction]) {
    var bench = bench(["a": 1, "b": 2])
    for (number, action) in actions.enumerated() { bench.act(0, UInt64(number) + 1, action) }
    let commands = bench.turn()
    #expect(!bench.frames(to: 0, commands).isEmpty)
    #expect(bench.frames(to: 1, commands).isEmpty)
    #expect(bench.server.state.root == ["map": [:]])
  }

  @Test("a client is told that the entries went which it saw, and nothing of the others")
  func emptiedInPart() {
    var bench = bench(["a": 1, "b": 2, "c": 3])
    bench.act(0, 1, .set(["map"], [:]))
    let messages = bench.said(to: 1, bench.turn())
    let patches = messages.flatMap { message -> [[UInt8]] in
      guard case .patch(_, from: _, let patches) = message else { return [] }
      return patches.map(\.patch)
    }
    // The map {"c": undefined}, and the same below "map".
    let map: [UInt8] = [0xa1, 0x61, 0x63, 0xf7]
    let whole: [UInt8] = [0xa1, 0x63, 0x6d, 0x61, 0x70] + map
    #expect(Set(patches) == [map, whole])
  }
}
