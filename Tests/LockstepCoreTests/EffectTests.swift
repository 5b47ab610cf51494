import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

/// The behaviour of effects while they run.
@Suite("Effects: running")
struct EffectTests {
  func makeStore(
    _ effects: @escaping @Sendable (Act) -> Effect<Act>
  ) -> TestStore<Script> {
    TestStore(initialState: Trace()) { Script.script(effects) }
  }

  /// Receives actions, each of which is recorded in the trace.
  func receive(_ names: [String], _ store: TestStore<Script>) async {
    for name in names { await store.receive(Act(name)) { $0.log.append(name) } }
  }

  struct Failure: Error {}

  // MARK: run

  @Test("EFF-01, RED-08, RED-15: an effect sends any number of actions")
  func run() async {
    let store = makeStore {
      $0 == "start"
        ? .run { send in
          await send("a")
          await send("b")
        } : .none
    }
    await store.send("start") { $0.log = ["start"] }
    await receive(["a", "b"], store)
    await store.finish()
  }

  @Test("EFF-02: operators combine effects, and a combined effect runs as one")
  func composition() async {
    @Sendable func part(_ number: Int) -> Effect<Int> {
      .run(name: "\(number)") { [clock = DependencyValues.current.clock] send in
        try await clock.pause(for: .seconds(number))
        await send(number)
      }
    }
    let store = makeStore { action in
      switch action {
      case "start":
        .merge(
          Effect.concatenate(part(2), part(1)).map { Act("left \($0)") },
          part(1).map { $0 * 10 }.map { Act("right \($0)") },
          .concatenate(.none, .send(Act("at once")), .none)
        ).cancellable(id: "all")
      case "stop": .cancel(id: "all")
      default: .none
      }
    }
    await store.send("start") { $0.log = ["start"] }
    await receive(["at once"], store)
    await store.clock.advance(by: .seconds(1))
    await receive(["right 10"], store)
    await store.clock.advance(by: .seconds(1))
    await receive(["left 2"], store)
    #expect(store.runningEffects.map(\.name) == ["1"])
    await store.send("stop") { $0.log.append("stop") }
    #expect(store.runningEffects == [])
    await store.clock.advance(by: .seconds(9))
    await store.finish()
  }

  @Test("RED-12: an effect keeps what it captured when it was made")
  func capture() async {
    let store = TestStore(initialState: Trace()) {
      Reduce<Trace, Act> { state, action in
        state.log.append(action.name)
        let clock = DependencyValues.current.clock
        guard action == "tap" else { return .none }
        return .run { [count = state.log.count] send in
          try await clock.pause(for: .seconds(1))
          await send(Act("fact about \(count)"))
        }
      }
    }
    await store.send("one") { $0.log = ["one"] }
    await store.send("tap") { $0.log.append("tap") }
    await store.send("while loading") { $0.log.append("while loading") }
    await store.clock.run()
    await receive(["fact about 2"], store)
  }

  @Test("2.1.6: catch gets the error, and can send")
  func catching() async {
    let store = makeStore {
      $0 == "start"
        ? .run { _ in
          throw Failure()
        } catch: { error, send in
          await send(Act("\(error)"))
        } : .none
    }
    await store.send("start") { $0.log = ["start"] }
    await receive(["Failure()"], store)
    await store.finish()
  }

  @Test("2.1.6: a CancellationError is ignored silently, and does not reach catch")
  func cancellationError() async {
    let store = makeStore {
      $0 == "start"
        ? .run { _ in
          throw CancellationError()
        } catch: { _, send in
          await send("caught")
        } : .none
    }
    await store.send("start") { $0.log = ["start"] }
    await store.finish()
    #expect(store.isQuiet)
  }

  @Test("2.1.5: an effect that continues after its cancellation sends nothing")
  func sendAfterCancellation() async {
    let store = makeStore { action in
      let clock = DependencyValues.current.clock
      return action == "start"
        ? .run { send in
          try? await clock.pause(for: .seconds(1))
          await send("late")
        }.cancellable(id: 1)
        : .cancel(id: 1)
    }
    await store.send("start") { $0.log = ["start"] }
    await store.send("cancel") { $0.log.append("cancel") }
    await store.finish()
  }

  @Test("2.1.7: parts of a merge run concurrently, parts of a sequence one after the other")
  func concurrency() async {
    let store = makeStore { action in
      let clock = DependencyValues.current.clock
      func step(_ name: String) -> Effect<Act> {
        .run { send in
          try await clock.pause(for: .seconds(1))
          await send(Act(name))
        }
      }
      switch action {
      case "merge": return .merge(step("a"), step("b"))
      case "concatenate": return .concatenate(step("c"), step("d"))
      default: return .none
      }
    }
    await store.send("merge") { $0.log = ["merge"] }
    #expect(store.clock.sleepers == 2)
    await store.clock.advance(by: .seconds(1))
    await receive(["a", "b"], store)
    await store.send("concatenate") { $0.log.append("concatenate") }
    #expect(store.clock.sleepers == 1)
    await store.clock.advance(by: .seconds(1))
    await receive(["c"], store)
    await store.clock.advance(by: .seconds(1))
    await receive(["d"], store)
    await store.finish()
  }

  // MARK: Time

  @Test("2.1.8: debounce starts the work after a quiet interval, not before")
  func debounce() async {
    let begun = Atomic(0)
    let store = makeStore { action in
      action == "done"
        ? .none
        : .run { send in
          begun.add(1, ordering: .relaxed)
          await send("done")
        }.debounce(id: 1, for: .seconds(1))
    }
    await store.send("a") { $0.log = ["a"] }
    await store.clock.advance(by: .milliseconds(900))
    await store.send("b") { $0.log.append("b") }
    await store.clock.advance(by: .milliseconds(900))
    #expect(begun.load(ordering: .relaxed) == 0)
    await store.clock.advance(by: .milliseconds(100))
    await receive(["done"], store)
    #expect(begun.load(ordering: .relaxed) == 1)
    await store.finish()
  }

  @Test("2.1.8: throttle over time", arguments: [true, false])
  func throttle(latest: Bool) async {
    let store = makeStore { action in
      action.name.hasPrefix("did")
        ? .none
        : .send(Act("did \(action)")).throttle(id: 1, for: .seconds(1), latest: latest)
    }
    await store.send("a") { $0.log = ["a"] }
    await receive(["did a"], store)
    await store.send("b") { $0.log.append("b") }
    await store.send("c") { $0.log.append("c") }
    await store.clock.advance(by: .milliseconds(999))
    await store.clock.advance(by: .milliseconds(1))
    await receive([latest ? "did c" : "did b"], store)
    await store.clock.advance(by: .seconds(1))
    await store.send("d") { $0.log.append("d") }
    await receive(["did d"], store)
    await store.finish()
  }

  @Test("RED-08, 2.1: a timer sends after each interval until it is cancelled")
  func timer() async {
    let store = makeStore {
      switch $0 {
      case "start": .timer(every: .seconds(1)) { "tick" }.cancellable(id: "timer")
      case "stop": .cancel(id: "timer")
      default: .none
      }
    }
    await store.send("start") { $0.log = ["start"] }
    await store.clock.advance(by: .milliseconds(3500))
    await receive(["tick", "tick", "tick"], store)
    guard case .timer = store.log.newest?.cause.origin else {
      Issue.record("\(String(describing: store.log.newest?.cause.origin))")
      return
    }
    await store.send("stop") { $0.log.append("stop") }
    await store.clock.advance(by: .seconds(5))
    await store.finish()
  }

  @Test("EFF-12, RDX-12: the values of a stream are sent until it ends")
  func stream() async {
    let (stream, continuation) = AsyncStream<Act>.makeStream()
    let store = makeStore { $0 == "connect" ? .stream(stream) : .none }
    await store.send("connect") { $0.log = ["connect"] }
    continuation.yield("updateWebSocket")
    await receive(["updateWebSocket"], store)
    #expect(store.runningEffects.map(\.name) == ["stream"])
    continuation.finish()
    await store.finish()
    #expect(store.log.chain(of: 2).map(\.name) == ["updateWebSocket", "connect"])
  }

  // MARK: Names inside of effects

  @Test("2.1: withTaskCancellation and Task.cancel(id:) work on parts of effects")
  func taskCancellation() async {
    let store = makeStore { action in
      let clock = DependencyValues.current.clock
      switch action {
      case "start":
        return .run { send in
          do {
            try await withTaskCancellation(id: "part") { try await clock.pause(for: .seconds(9)) }
          } catch is CancellationError {
            await send("the part was cancelled")
          }
        }
      case "cancel by effect": return .run { _ in await Task.cancel(id: "part") }
      case "cancel by reducer": return .cancel(id: "part")
      default: return .none
      }
    }
    for cancel in ["cancel by effect", "cancel by reducer"] {
      await store.send("start") { $0.log.append("start") }
      await store.send(Act(cancel)) { $0.log.append(cancel) }
      await receive(["the part was cancelled"], store)
      #expect(store.clock.sleepers == 0)
    }
    await store.finish()
  }

  @Test("2.1: withTaskCancellation cancels the tasks with its name before it begins")
  func taskCancelInFlight() async {
    let store = makeStore { action in
      let clock = DependencyValues.current.clock
      guard action == "a" || action == "b" else { return .none }
      return .run { send in
        try await withTaskCancellation(id: 1, cancelInFlight: true) {
          try await clock.pause(for: .seconds(1))
          await send(Act("\(action) is done"))
        }
      }
    }
    await store.send("a") { $0.log = ["a"] }
    await store.send("b") { $0.log.append("b") }
    #expect(store.clock.sleepers == 1)
    await store.clock.run()
    await receive(["b is done"], store)
    await store.finish()
  }

  @Test("2.1: Task.cancel(id:) in an effect ends effects with that key, and the next part begins")
  func taskCancelsEffects() async {
    let store = makeStore { action in
      switch action {
      case "start": .concatenate(.never("a").cancellable(id: "work"), .send("next"))
      case "other": .never("other").cancellable(id: "other")
      case "cancel": .run { _ in await Task.cancel(id: "work") }
      case "replace":
        .run { _ in
          try await withTaskCancellation(id: "other", cancelInFlight: true) {
            try await Task.sleep(for: .seconds(600))
          }
        }
      default: .none
      }
    }
    await store.send("start") { $0.log = ["start"] }
    await store.send("other") { $0.log.append("other") }
    await store.send("cancel") { $0.log.append("cancel") }
    await receive(["next"], store)
    #expect(store.runningEffects.map(\.name) == ["other"])
    await store.send("replace") { $0.log.append("replace") }
    #expect(store.runningEffects.map(\.name) == ["run"])
    await store.skipInFlightEffects()
  }

  @Test("2.1: outside an effect, Task.cancel(id:) cancels nothing")
  func taskCancelOutside() async {
    let store = makeStore { $0 == "start" ? .never("a").cancellable(id: "work") : .none }
    await store.send("start") { $0.log = ["start"] }
    await Task.cancel(id: "work")
    #expect(store.runningEffects.map(\.name) == ["a"])
    await store.skipInFlightEffects()
  }

  @Test("2.1: withTaskCancellation returns the result of its operation, or rethrows")
  func taskResult() async throws {
    #expect(try await withTaskCancellation(id: 1) { 7 } == 7)
    let store = makeStore { action in
      action == "start"
        ? .run { send in
          let number = try await withTaskCancellation(id: 1) { 7 }
          await send(Act("\(number)"))
          try await withTaskCancellation(id: 1) { throw Failure() }
        } catch: { error, send in
          await send(Act("\(error)"))
        } : .none
    }
    await store.send("start") { $0.log = ["start"] }
    await receive(["7", "Failure()"], store)
    await store.finish()
  }

  // MARK: map

  @Test("2.1: map changes an effect's actions, and keeps its keys and its timing")
  func map() async {
    let store = makeStore { action in
      let clock = DependencyValues.current.clock
      func sum(_ name: String) -> Effect<Int> {
        switch name {
        case "send": return .send(1)
        case "catch":
          return .run { _ in
            throw Failure()
          } catch: { _, send in
            await send(2)
          }
        case "wait":
          return .run { send in
            try await clock.pause(for: .seconds(1))
            await send(3)
          }.cancellable(id: "wait")
        case "debounce": return .send(4).debounce(id: 4, for: .seconds(1))
        case "throttle": return .send(5).throttle(id: 5, for: .seconds(1), latest: true)
        case "all": return .merge(.send(6), .concatenate(.send(7), .send(8).accepted))
        case "cancel": return .cancel(id: "wait")
        default: return .none
        }
      }
      return sum(action.name).map { Act("\($0 * 10)") }
    }
    for (name, received) in [
      ("send", ["10"]), ("catch", ["20"]), ("throttle", ["50"]), ("all", ["60", "70", "80"]),
    ] {
      await store.send(Act(name)) { $0.log.append(name) }
      await receive(received, store)
    }
    for (name, received) in [("wait", "30"), ("debounce", "40")] {
      await store.send(Act(name)) { $0.log.append(name) }
      await store.clock.advance(by: .seconds(1))
      await receive([received], store)
    }
    await store.send("wait") { $0.log.append("wait") }
    await store.send("cancel") { $0.log.append("cancel") }
    await store.finish()
  }
}

extension TestStore {
  /// Whether no effect runs.
  var isQuiet: Bool { runningEffects.isEmpty }
}
