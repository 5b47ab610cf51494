import CBOR
import ClientCore
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

@Suite struct OptimisticActionsTests {
  // MARK: The client

  @Test func `an action shows at once, and until the mirror has its change`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    #expect(pair.session.optimisticView(of: root) == nil)
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    #expect(pair.shown(root) == ["n": 1] && pair.session.unacknowledged == 1)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 0])
    pair.run()
    #expect(pair.session.optimisticView(of: root) == nil)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
  }

  @Test func `an action that was not sent optimistically does not show`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.increment(["n"], by: 1))
    #expect(pair.session.optimisticView(of: root) == nil)
    pair.send(.increment(["n"], by: 5), isOptimistic: true)
    #expect(pair.shown(root) == ["n": 5])
    pair.run()
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 6])
  }

  @Test func `whatever part of the answer has arrived, no action shows twice or disappears`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    for by in 1...3 { pair.send(.increment(["n"], by: .integer(Int64(by))), isOptimistic: true) }
    for byte in pair.answer() {
      pair.receive([byte])
      #expect(pair.shown(root) == ["n": 6])
    }
    #expect(pair.session.unacknowledged == 0 && pair.session.optimisticView(of: root) == nil)
  }

  @Test func `the changes of others show below the waiting actions`() {
    var pair = Pair.optimistic(["n": 0, "log": []])
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.append(["log"], "mine"), isOptimistic: true)
    pair.bench.open(9)
    pair.bench.say(9, .hello(.init(versions: 1...1, label: "other")))
    pair.bench.act(9, 1, .append(["log"], "theirs"))
    // Theirs is reduced first.
    pair.receive(pair.turn())
    #expect(pair.shown(root) == ["n": 0, "log": ["theirs", "mine"]])
    pair.run()
    #expect(
      pair.session.value(of: root, as: Value.self) == ["n": 0, "log": ["theirs", "mine"]])
  }

  @Test func `an action that the daemon rejects disappears`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.test(["n"], 7), isOptimistic: true)
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    #expect(pair.session.optimisticView(of: root)?.actions.count == 2)
    pair.run()
    #expect(pair.session.optimisticView(of: root) == nil)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
  }

  @Test func `actions show while the connection is lost, and are done once`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    // The daemon has done it, and the client has not heard of that.
    _ = pair.answer()
    pair.lose()
    pair.send(.increment(["n"], by: 10), isOptimistic: true)
    #expect(pair.shown(root) == ["n": 11])
    while true {
      let bytes = pair.answer()
      if bytes.isEmpty { break }
      for byte in bytes {
        pair.receive([byte])
        #expect(pair.shown(root) == ["n": 11])
      }
    }
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 11])
    #expect(pair.session.optimisticView(of: root) == nil)
  }

  @Test func `an action that a crash of the daemon took back shows until it is done again`() {
    var start = Pair.optimistic()
    let root = start.subscribeOptimistically()
    start.run()
    let kept = start.bench
    start.send(.increment(["n"], by: 1), isOptimistic: true)
    let answer = start.answer()
    for received in answer.indices {
      var pair = start
      pair.receive(Array(answer[..<received]))
      pair.bench = kept
      pair.lose()
      #expect(pair.session.unacknowledged == 1)
      while case let bytes = pair.answer(), !bytes.isEmpty {
        for byte in bytes {
          pair.receive([byte])
          #expect(pair.shown(root) == ["n": 1])
        }
      }
      #expect(pair.session.optimisticView(of: root) == nil && pair.session.unacknowledged == 0)
      #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
    }
  }

  @Test func `an action whose outcome is unknown shows no more`() {
    var limits = Limits()
    limits.detachedSessions = 0
    var pair = Pair.optimistic(limits: limits)
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    _ = pair.answer()
    pair.lose()
    pair.run()
    #expect(pair.session.optimisticView(of: root) == nil && pair.session.unacknowledged == 0)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
  }

  @Test func `nothing shows before its answer where the daemon is older`() {
    var pair = Pair.optimistic(versions: 1...2)
    let root = pair.subscribeOptimistically()
    // What is sent before the welcome may show until then.
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    #expect(pair.session.optimisticView(of: root) == nil)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
  }

  @Test func `a mirror that becomes optimistic while actions wait shows them`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    let late = pair.subscribe(to: ["n"])
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    #expect(pair.session.optimisticView(of: late) == nil)
    pair.session.showOptimistically(late)
    for mirror in [root, late] {
      #expect(pair.session.optimisticView(of: mirror)?.actions.count == 1)
    }
    pair.run()
    #expect(pair.session.optimisticView(of: late) == nil)
    #expect(pair.session.value(of: late, as: Value.self) == 1)
  }

  @Test func `closing drops what waits`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    pair.update { session, _, commands in session.close(into: &commands) }
    #expect(pair.session.optimisticView(of: root) == nil)
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 0])
  }

  @Test func `a daemon that announces numbers that were never used does no harm`() {
    var pair = Pair.optimistic()
    let root = pair.subscribeOptimistically()
    pair.run()
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    for (last, revision) in [(UInt64.max, UInt64.max), (.max, 0), (0, .max), (1 << 63, 3)] {
      pair.receive(
        Frame.encode {
          ServerMessage.decided(through: last, revision: revision).encode(into: &$0)
        })
    }
    pair.send(.increment(["n"], by: 1), isOptimistic: true)
    #expect(pair.session.unacknowledged == 2)
    pair.run()
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 2])
  }

  // MARK: The daemon

  @Test func `what is decided is announced before its patches, once, to those who asked`() {
    var bench = Bench()
    for number in 1...2 as ClosedRange<UInt64> {
      bench.open(number)
      bench.say(
        number,
        .hello(.init(versions: 1...3, label: "bench", wantsDecisions: number == 1)),
        .subscribe(subscription: 1, .root, nil))
    }
    _ = bench.settle()
    bench.act(1, 1, .increment(["n"], by: 1), .test(["n"], 7), .increment(["n"], by: 1))
    bench.act(2, 1, .increment(["n"], by: 1))
    let commands = bench.turn()
    #expect(
      types(bench.frames(to: 1, commands)) == [
        .decided, .patch, .acknowledgement, .acknowledgement, .acknowledgement,
      ])
    #expect(types(bench.frames(to: 2, commands)) == [.patch, .acknowledgement])
    #expect(
      bench.frames(to: 1, commands).flatMap { serverMessages($0) }.first
        == .decided(through: 3, revision: 2))
    bench.act(2, 2, .increment(["n"], by: 1))
    #expect(types(bench.frames(to: 1, bench.turn())) == [.patch])
  }

  @Test func `a client of version 2 gets no announcement, whatever it asks`() {
    var bench = Bench()
    bench.open(1)
    bench.say(
      1, .hello(.init(versions: 1...2, label: "bench", wantsDecisions: true)),
      .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    bench.act(1, 1, .increment(["n"], by: 1))
    #expect(types(bench.frames(to: 1, bench.turn())) == [.patch, .acknowledgement])
  }

  private func types(_ frames: [[UInt8]]) -> [MessageType] {
    frames.flatMap { serverMessages($0) }.compactMap {
      switch $0 {
      case .decided: .decided
      case .patch: .patch
      case .acknowledgement: .acknowledgement
      default: nil
      }
    }
  }
}

extension Pair {
  fileprivate static func optimistic(
    _ root: Value = ["n": 0], limits: Limits = Limits(),
    versions: ClosedRange<UInt64> = ProtocolVersion.range
  ) -> Pair {
    var configuration = ClientSession.Configuration(label: "pair")
    configuration.wantsDecisions = true
    configuration.versions = versions
    return Pair(root, limits: limits, configuration)
  }

  fileprivate mutating func subscribeOptimistically() -> UInt64 {
    let number = subscribe(to: .root)
    session.showOptimistically(number)
    return number
  }

  /// What a mirror shows.
  fileprivate func shown(_ number: UInt64) -> Value? {
    guard let view = session.optimisticView(of: number) else {
      return session.value(of: number, as: Value.self)
    }
    var document = Document(view.confirmed.value(as: Value.self) ?? .null)
    let prediction = Prediction(of: DocumentFeature(), dependencies: DependencyValues())
    for (id, payload) in view.actions {
      guard
        let action = try? CBORDecoder.read(
          payload,
          { (decoder) throws(CBORError) in
            try DocumentAction(from: &decoder, seed: HashSeed(7))
          })
      else { continue }
      prediction.reduce(
        action, into: &document, from: .owner, number: id.rawValue, seed: HashSeed(7))
    }
    return document.root
  }
}
