import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

// What an action does, worked out beside the loop before it is performed: it is what the action does
// then, whatever others have changed and whatever rights its sender has lost meanwhile.
extension LargeActionTests {
  // MARK: Which are foreseen

  @Test func `what will be rejected is not foreseen`() {
    let policy = Policy([
      Rule(users: [7], mayConnect: true, read: [.whole], act: [.all]),
      Rule(users: [8], mayConnect: true, read: [.whole]),
    ])
    var bench = Bench(["n": 1, "map": Self.map], limits: Self.limits, policy: policy)
    for (number, isForeseen) in [(7, true), (8, false)] as [(UInt64, Bool)] {
      bench.join(number, uid: number)
      bench.act(number, 1, .put("a", Self.text("x")))
      #expect(decoded(in: bench.handle(.turnEnded)) == [number])
      #expect(bench.server.action(for: ConnectionID(number))?.decoded().isForeseen == isForeseen)
      _ = finish(number, in: &bench)
      bench.act(number, 2, .copy(from: ["map"], to: ["other"]))
      #expect(decoded(in: bench.handle(.turnEnded)) == [number])
      #expect(bench.server.action(for: ConnectionID(number))?.decoded().isForeseen == isForeseen)
      _ = finish(number, in: &bench)
    }
    #expect(bench.server.revision == 2)
  }

  @Test func `what has been done is not foreseen`() {
    let merge = DocumentAction.merge([], ["a": Self.text("x")])
    for (action, number, isForeseen) in [
      (.put("a", Self.text("x")), 1, true), (.put("a", Self.text("x")), 2, false),
      (merge, 1, true), (.transaction([merge]), 1, true), (merge, 2, false),
    ] as [(DocumentAction, UInt64, Bool)] {
      var bench = bench([1000])
      bench.act(1, number, action)
      _ = bench.handle(.turnEnded)
      #expect(bench.server.action(for: ConnectionID(1))?.decoded().isForeseen == isForeseen)
    }
  }

  /// A transaction of many parts, which all touch "n".
  static let counting = DocumentAction.transaction(
    [DocumentAction](repeating: .increment(["n"], by: 1), count: 300))

  @Test func `it is foreseen again while the state changes where it touches it, not for ever`() {
    for most in 0...6 {
      var bench = bench()
      bench.act(1, 1, Self.counting)
      var commands = bench.handle(.turnEnded)
      var times = 0
      while decoded(in: commands) == [1] {
        times += 1
        commands = finish(1, in: &bench) {
          // The daemon's own actions wait for none.
          if times <= most { $0.handle(.acted(.increment(["n"], by: 1000))) }
        }
      }
      #expect(times == min(most + 1, 6))
      let others = UInt64(min(most, 6))
      #expect(bench.server.revision == others + 1)
      #expect(bench.server.state.root == ["n": .integer(Int64(300 + 1000 * others))])
      #expect(
        bench.said(to: 1, commands).contains(Acknowledgement.reduced(1, 1, at: others + 1)))
    }
  }

  @Test func `what is foreseen again is the next, and others go on meanwhile`() {
    var bench = bench([7, 8, 9])
    bench.act(1, 1, Self.counting)
    bench.act(2, 1, .put("b", Self.text("x")))
    #expect(decoded(in: bench.handle(.turnEnded)) == [1])
    #expect(decoded(in: finish(1, in: &bench) { $0.act(3, 1, .put("n", 5)) }) == [1])
    #expect(decoded(in: finish(1, in: &bench) { $0.act(3, 2, .put("other", 5)) }) == [2])
    _ = finish(2, in: &bench)
    #expect(bench.server.state.root == ["n": 305, "other": 5, "b": Self.text("x")])
  }

  @Test func `a client that goes, or does not read, while its action is foreseen again has none`() {
    for isClosed in [true, false] {
      var bench = bench()
      bench.server.keepRemains()
      let id = ConnectionID(1)
      bench.act(1, 1, Self.counting)
      _ = bench.handle(.turnEnded)
      let job = bench.server.action(for: id)
      bench.act(2, 1, .put("n", 5))
      bench.handle(.actionDecoded(id, job?.decoded()))
      _ = bench.server.takeRemains()
      bench.handle(isClosed ? .closed(id) : .blocked(id, unsent: 1))
      #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
      #expect(!bench.server.takeRemains().isEmpty)
      bench.act(2, 2, .put("b", Self.text("x")))
      #expect(decoded(in: bench.handle(.turnEnded)) == [2])
      _ = finish(2, in: &bench)
      #expect(bench.server.state.root == ["n": 5, "b": Self.text("x")])
      if isClosed { continue }
      bench.handle(.drained(id))
      _ = bench.turn() + bench.turn()
      #expect(bench.server.state.root == ["n": 305, "b": Self.text("x")])
    }
  }

  @Test func `a missing right is found beside the loop, unless it is given meanwhile`() {
    let rules = [Rule(users: [7], mayConnect: true, read: [.whole], act: [.all])]
    let action = DocumentAction.transaction([Self.counting, .set(["o"], 1)])
    for isGiven in [false, true] {
      let denying = Policy(rules + [Rule(users: [7], denyWrite: patterns(["o"]))])
      var bench = Bench(["n": 0, "o": 0], limits: Self.limits, policy: denying)
      bench.join(1, uid: 7)
      bench.act(1, 1, action)
      #expect(decoded(in: bench.handle(.turnEnded)) == [1])
      let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
      #expect(decoded?.isDenied == true)
      if isGiven { bench.handle(.policy(Policy(rules))) }
      bench.handle(.actionDecoded(ConnectionID(1), decoded))
      let said = bench.said(to: 1, bench.handle(.turnEnded))
      #expect(bench.server.revision == (isGiven ? 1 : 0))
      #expect(isGiven || said.contains { "\($0)".contains("needs the right to write /o") })
    }
  }

  @Test func `a right that is missing by what others change is missing, also for what is rejected`()
  {
    let rule = Rule(
      users: [7], mayConnect: true, read: [.whole], act: [.all], denyWrite: patterns(["a/b"]))
    for (parts, isDenied) in [
      ([.test(["t"], 1), .set(["a", "c"], 5)], true), ([.test(["t"], 1)], false),
    ] as [([DocumentAction], Bool)] {
      var bench = Bench(["t": 2, "a": [:], "n": 0], limits: Self.limits, policy: Policy([rule]))
      bench.join(1, uid: 7)
      bench.act(1, 1, .transaction([Self.counting] + parts))
      #expect(decoded(in: bench.handle(.turnEnded)) == [1])
      let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
      #expect(decoded?.isForeseen == true)
      // An array is protected as a whole.
      bench.handle(.acted(.put("a", [])))
      bench.handle(.actionDecoded(ConnectionID(1), decoded))
      let said = bench.said(to: 1, bench.turn())
      #expect(said.contains { "\($0)".contains(isDenied ? "the right to write" : "test") })
    }
  }

  @Test func `what was foreseen before is released beside the loop`() {
    var bench = bench()
    bench.server.keepRemains()
    bench.act(1, 1, Self.counting)
    _ = bench.handle(.turnEnded)
    _ = finish(1, in: &bench) { $0.act(2, 1, .put("n", 5)) }
    let again = bench.server.action(for: ConnectionID(1))?.decoded()
    _ = bench.server.takeRemains()
    bench.handle(.actionDecoded(ConnectionID(1), again))
    #expect(!bench.server.takeRemains().isEmpty)
  }

  @Test func `an action that cannot be foreseen again is performed with what it was decoded to`() {
    var bench = bench()
    bench.act(1, 1, Self.counting)
    _ = bench.handle(.turnEnded)
    _ = finish(1, in: &bench) { $0.act(2, 1, .put("n", 5)) }
    bench.handle(.actionDecoded(ConnectionID(1), nil))
    #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
    #expect(bench.server.state.root == ["n": 305])
  }

  @Test func `a right that is lost meanwhile is missing`() {
    let rules = [Rule(users: [7], mayConnect: true, read: [.whole], act: [.all])]
    for isDenied in [false, true] {
      var bench = Bench(["n": 0, "o": 0], limits: Self.limits, policy: Policy(rules))
      bench.join(1, uid: 7)
      bench.act(1, 1, Self.counting)
      #expect(decoded(in: bench.handle(.turnEnded)) == [1])
      let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
      #expect(decoded?.isForeseen == true)
      let denied = patterns([isDenied ? "n" : "o"])
      bench.handle(.policy(Policy(rules + [Rule(users: [7], denyWrite: denied)])))
      bench.handle(.actionDecoded(ConnectionID(1), decoded))
      _ = bench.handle(.turnEnded)
      #expect(bench.server.revision == (isDenied ? 0 : 1))
    }
  }

  @Test func `an action during which the process has ended is done on the loop`() throws {
    for isSuspect in [false, true] {
      var bench = bench([1000])
      var commands: [Command] = []
      bench.server.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
      var kept = bench.server.handOver.next
      if isSuspect { kept.suspects = [SessionAction(session: Bench.token(1), number: 1)] }
      bench.server = Server(
        restoring: kept, reducer: DocumentFeature(), limits: Self.limits, at: bench.now)
      bench.join(2, token: Bench.token(1))
      bench.act(2, 1, .put("a", Self.text("x")))
      #expect(decoded(in: bench.handle(.turnEnded)) == [2])
      #expect(bench.server.action(for: ConnectionID(2))?.decoded().isForeseen == !isSuspect)
      _ = finish(2, in: &bench)
      #expect(bench.server.revision == 1)
    }
  }

  // MARK: Short, and yet long

  private static let map = Value.object(
    TrieMap(uniqueKeysWithValues: (0...Remains.worthwhile).map { ("\($0)", .integer(1)) }))

  @Test(
    arguments: [
      .set(["map"], [:]), .replace(["map"], []), .insert(["map"], [1]), .set([], [:]),
      .move(from: ["map"], to: ["other"]), .move(from: ["n"], to: ["map"]),
      .copy(from: ["map"], to: ["other"]), .transaction([.set(["n"], 2), .set(["map"], [:])]),
      counting,
    ] as [DocumentAction])
  func `a short action is foreseen if it moves or replaces a large value, or has many parts`(
    action: DocumentAction
  ) {
    var bench = Bench(["n": 1, "map": Self.map])
    bench.join(1)
    bench.act(1, 1, action)
    #expect(decoded(in: bench.handle(.turnEnded)) == [1])
    _ = finish(1, in: &bench)
    #expect(bench.server.revision == 1)
  }

  @Test(
    arguments: [
      .set(["map"], 1), .set(["map", "1"], [:]), .remove(["map"]), .increment(["n"], by: 1),
      .merge(["map"], ["1": 2]), .set(["n"], [:]), .move(from: ["n"], to: ["m"]),
      .test(["n"], 1), .transaction([.set(["n"], 2), .remove(["map"])]),
      .transaction([DocumentAction](repeating: .increment(["n"], by: 1), count: 255)),
    ] as [DocumentAction])
  func `a short action that does little is performed at once`(action: DocumentAction) {
    var bench = Bench(["n": 1, "map": Self.map])
    bench.join(1)
    bench.act(1, 1, action)
    #expect(decoded(in: bench.handle(.turnEnded)).isEmpty)
    #expect(bench.server.action(for: ConnectionID(1)) == nil)
  }

  // MARK: What it does

  private static let values: [Value] = [
    1, text("x"), ["a": 1, "b": [1, 2], "c": text("y")], ["a": 1, "b": [1, 3], "c": text("y")],
    [1, 2, text("z")], [1, 2, 3, text("z")], [:], ["d": text("x")],
  ]

  /// Actions on a document with each of `values` at "p".
  private static let actions: [DocumentAction] =
    values.flatMap { value in
      [
        .set(["p"], value), .replace(["p"], value), .insert(["p"], value), .merge(["p"], value),
        .set(["p", "b"], value), .set(["p", "0"], value), .append(["p"], value),
        .insert(["p", "0"], value), .transaction([.set(["p"], value), .set(["q"], value)]),
        .set(["absent", "p"], value), .insert(["q"], value), .set([], ["p": value]),
        .merge([], ["p": value]), .merge(["p", "b"], value),
        .merge([], ["p": ["a": nil, "e": value]]),
        .append(["p", "b"], value), .append(["q"], value), .test(["p"], value),
        .transaction([.append(["p", "b"], value), .test(["q"], value)]),
        .transaction([.set(["p", "0"], value), .set(["p", "2"], value)]),
      ]
    } + [
      .move(from: ["p"], to: ["q"]), .move(from: ["p"], to: []), .copy(from: ["p"], to: ["q"]),
      .move(from: ["p", "b"], to: ["q"]), .copy(from: ["p"], to: ["p", "b"]),
      .move(from: ["p", "0"], to: ["p", "1"]), .remove(["p"]),
      .transaction([.move(from: ["p"], to: ["q"]), .set(["p"], ["new": 1])]),
      .transaction([.set(["q"], 1), .remove(["q"])]), .transaction([]),
    ]

  @Test(arguments: values)
  func `a foreseen patch is what the action makes`(old: Value) {
    for action in Self.actions {
      var results: [(said: [ServerMessage], size: StateMeasure, root: Value)] = []
      for largest in [0, Int.max] {
        var limits = Limits()
        limits.largeActionBytes = largest
        var bench = Bench(["p": old], limits: limits)
        bench.join(1)
        bench.say(1, .subscribe(subscription: 1, .root, nil))
        bench.say(1, .subscribe(subscription: 2, ["p"], nil))
        _ = bench.settle()
        bench.act(1, 1, action)
        let said = bench.said(to: 1, bench.turn())
        results.append((said, bench.server.knownSize, bench.server.state.root))
      }
      #expect(results[0].said == results[1].said, "\(action)")
      #expect(results[0].size == results[1].size, "\(action)")
      #expect(results[0].root.isSame(as: results[1].root), "\(action)")
    }
  }

  /// What one client does while an action of another waits.
  private static let others: [DocumentAction] = [
    .set(["p", "a"], 5), .set(["p"], 5), .remove(["p"]), .set([], ["p": ["a": 5]]),
    .set(["other"], 5), .set(["p", "b"], ["c": 1]), .set([], [:]), .set(["list", "1"], 9),
    .insert(["list", "0"], 1), .remove(["list", "0"]), .move(from: ["p"], to: ["q"]),
  ]

  private static let waiting: [DocumentAction] = [
    .set(["p"], ["a": 1, "b": ["c": text("x")]]),
    .set(["p", "b"], ["a": 1, "b": ["c": text("x")]]),
    .move(from: ["p"], to: ["q"]), .move(from: ["p", "b"], to: ["other"]),
    .move(from: ["p"], to: []),
    .copy(from: ["p"], to: ["other"]), .set(["list", "1"], ["a": text("x")]),
    .transaction([.set(["list", "0"], text("x")), .set(["list", "2"], text("x"))]),
    .transaction([.set(["p", "a"], text("x")), .set(["other"], text("x"))]),
    .move(from: ["list", "0"], to: ["list", "2"]),
    .merge(["p"], ["a": nil, "b": ["c": 3, "d": text("x")]]),
    .merge([], ["p": ["a": 7], "q": text("x")]),
    .append(["list"], text("x")), .test(["p"], ["a": 1, "b": ["c": 2]]),
    .transaction([.append(["list"], text("x")), .set(["q"], 1)]),
  ]

  @Test(arguments: others, waiting)
  func `what changes between is in the patch`(other: DocumentAction, action: DocumentAction) throws
  {
    var limits = Limits()
    limits.largeActionBytes = 0
    var bench = Bench(
      ["p": ["a": 1, "b": ["c": 2]], "other": 1, "list": [1, 1, 1, 1]], limits: limits)
    bench.join(1)
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    var mirror = Document(bench.server.state.root)
    bench.act(1, 1, action)
    _ = bench.handle(.turnEnded)
    let decoded = try #require(bench.server.action(for: ConnectionID(1))).decoded()
    bench.handle(.acted(other))
    bench.handle(.actionDecoded(ConnectionID(1), decoded))
    let messages = bench.said(to: 1, bench.handle(.turnEnded))
    for case .patch(_, _, let patches) in messages {
      for patch in patches {
        try CBORDecoder.read(patch.patch) { (decoder) throws(CBORError) in
          try mirror.apply(patch: &decoder, seed: HashSeed(7))
        }
      }
    }
    #expect(mirror.root.isSame(as: bench.server.state.root))
  }
}
