import CBOR
import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

@Suite("Middleware")
struct MiddlewareTests {
  /// A middleware whose two stages are closures of the test.
  struct Stage: Middleware {
    var name: String
    var before:
      @Sendable (inout Act, Trace, inout MiddlewareContext<Act>) throws(Rejection)
        -> MiddlewareVerdict = { (_, _, _) throws(Rejection) in .proceed }
    var after: @Sendable (Act, Trace, Reduction) -> Effect<Act> = { _, _, _ in .none }

    func before(
      _ action: inout Act, state: Trace, context: inout MiddlewareContext<Act>
    ) throws(Rejection) -> MiddlewareVerdict {
      try before(&action, state, &context)
    }

    func after(
      _ action: Act, state: Trace, reduction: Reduction, context: MiddlewareContext<Act>
    ) -> Effect<Act> {
      after(action, state, reduction)
    }
  }

  func makeBench(_ middleware: Stage...) -> Bench<Script> {
    Bench(Trace(), .script { _ in .none }, middleware: middleware)
  }

  @Test("RDX-07, RDX-20a, 2.4: before the reducer, middleware changes actions in the list's order")
  func changes() {
    func adding(_ word: String) -> Stage {
      Stage(
        name: word,
        before: { (action: inout Act, _, _) throws(Rejection) in
          action = Act("\(action) \(word)")
          return .proceed
        })
    }
    var bench = makeBench(adding("First Middleware"), adding("Second Middleware"))
    bench.send("OK")
    #expect(bench.log == ["OK First Middleware Second Middleware"])
    #expect(bench.core.log.newest?.action == "OK First Middleware Second Middleware")
  }

  @Test("2.4, 3.2: a swallowed action reaches neither the reducer nor later middleware")
  func swallows() {
    let seen = Mutex<[String]>([])
    var bench = makeBench(
      Stage(
        name: "guard",
        before: { (action: inout Act, _, _) throws(Rejection) in
          action == "bad" ? .swallow : .proceed
        }),
      Stage(
        name: "witness",
        before: { (action: inout Act, _, _) throws(Rejection) in
          let name = action.name
          seen.withLock { $0.append("before \(name)") }
          return .proceed
        },
        after: { action, _, _ in
          seen.withLock { $0.append("after \(action)") }
          return .none
        }))
    #expect(bench.send("bad") == [.swallowed] && bench.send("good") == [.changed(1)])
    #expect(bench.log == ["good"] && seen.withLock { $0 } == ["before good", "after good"])
    #expect(bench.core.log.all.map(\.outcome) == [.swallowed, .changed(1)])
  }

  @Test("2.4: an added action follows its cause through the chain, with the middleware as origin")
  func adds() throws {
    var bench = makeBench(
      Stage(
        name: "adder",
        before: { (action: inout Act, _, context) throws(Rejection) in
          if action == "a" { context.add("b") }
          return .proceed
        }),
      Stage(
        name: "marker",
        before: { (action: inout Act, _, _) throws(Rejection) in
          action = Act("\(action)!")
          return .proceed
        }))
    bench.send("a", from: .client(4))
    #expect(bench.log == ["a!", "b!"])
    let record = try #require(bench.core.log.newest)
    #expect(record.cause.origin == .middleware("adder") && record.cause.parent == 1)
    #expect(record.cause.client?.connection == 4)
  }

  @Test("2.1.10: an added action belongs to the cascade of the action it follows")
  func addedIsOfCascade() {
    let stage = Stage(
      name: "adder",
      before: { (action: inout Act, _, context) throws(Rejection) in
        if action == "a" { context.add("b") }
        return .proceed
      })
    var core = StoreCore(
      Trace(), reducer: Script.script { $0 == "a" ? .job("work") : .none }, middleware: [stage],
      seed: .unseeded)
    var patch = CBOREncoder()
    _ = core.send("a", patch: &patch)
    _ = core.sendNext(patch: &patch)
    // The effect of the first action still runs.
    #expect(!core.isDone(1))
    for effect in core.runningEffects { core.finished(effect.id) }
    #expect(core.isDone(1))
  }

  @Test("2.4: a middleware can reject an action")
  func rejects() {
    var bench = makeBench(
      Stage(
        name: "auth",
        before: { (_, _, context) throws(Rejection) in
          if context.cause.client == nil { throw Rejection(.refused, "who are you?") }
          return .proceed
        }))
    #expect(bench.send("a") == [.rejected(Rejection(.refused, "who are you?"))])
    #expect(bench.send("a", from: .client(1)) == [.changed(1)])
  }

  @Test("2.4, Redux getState: before the reducer, middleware decides by the state")
  func decidesByState() {
    let stage = Stage(
      name: "at most two",
      before: { (action: inout Act, state, _) throws(Rejection) in
        guard state.log.count < 2 else { throw Rejection(.limit, "there are \(state.log.count)") }
        action = Act("\(state.log.count) \(action)")
        return .proceed
      })
    var bench = makeBench(stage)
    #expect(bench.send("a") + bench.send("b") == [.changed(1), .changed(2)])
    #expect(bench.send("c") == [.rejected(Rejection(.limit, "there are 2"))])
    #expect(bench.log == ["0 a", "1 b"])
  }

  @Test("2.4: the state is lent to the stage before the reducer, which edits it in place")
  func stateIsLent() {
    let seen = Mutex<[Int]>([])
    let keeper = Mutex<[Counted.State]>([])
    func bench(keeps: Bool) -> Bench<Counted> {
      let stage = Counted.Stage { state in
        seen.withLock { $0.append(state.count) }
        if keeps { keeper.withLock { $0.append(state) } }
      }
      return Bench(Counted.State(), Counted(), middleware: [stage, stage])
    }
    var lent = bench(keeps: false)
    for _ in 0..<3 { lent.send("a") }
    #expect(lent.core.state.count == 3 && lent.core.state.copies == 0)
    #expect(seen.withLock { $0 } == [0, 0, 1, 1, 2, 2])
    var kept = bench(keeps: true)
    for _ in 0..<3 { kept.send("a") }
    #expect(kept.core.state.count == 3 && kept.core.state.copies == 3)
  }

  @Test("RDX-12, RDX-16, RDX-20a: middleware runs after the reducer, in order, with the new state")
  func after() throws {
    let seen = Mutex<[String]>([])
    func stage(_ name: String) -> Stage {
      Stage(
        name: name,
        after: { action, state, reduction in
          seen.withLock { $0.append("\(name) \(action) \(state.log.count) \(reduction)") }
          return action == "a" ? .merge(.send(Act("\(name) yields")), .job(name)) : .none
        })
    }
    var bench = makeBench(stage("x"), stage("y"))
    bench.send("a")
    #expect(seen.withLock { Array($0.prefix(2)) } == ["x a 1 changed(1)", "y a 1 changed(1)"])
    #expect(bench.log == ["a", "x yields", "y yields"] && bench.running == ["x", "y"])
    bench.send("later", by: "y")
    #expect(
      bench.core.log.last(3).map(\.cause.origin)
        == [.middleware("x"), .middleware("y"), .middleware("y")])
    #expect(bench.core.log.newest?.cause.parent == 1)
  }

  @Test("RDX-12, RDX-20c: a middleware does nothing by default, and leaves no rows")
  func defaults() {
    struct Silent: Middleware {
      typealias State = Trace
      typealias Action = Act
    }
    var bench = Bench(Trace(), Script.script { _ in .none }, middleware: [Silent()])
    for number in 0..<1000 { bench.send(Act("\(number)")) }
    #expect(bench.core.effectCount == 0 && Silent().name == "Silent")
  }

  @Test("2.4: middleware after the reducer sees a rejection as such")
  func afterRejection() {
    let seen = Mutex<[Reduction]>([])
    let stage = Stage(
      name: "log",
      after: { _, _, reduction in
        seen.withLock { $0.append(reduction) }
        return .none
      })
    var bench = Bench(
      Trace(),
      Reduce<Trace, Act> { (_, _) throws(Rejection) in throw Rejection(.refused, "no") },
      middleware: [stage])
    bench.send("a")
    #expect(seen.withLock { $0 } == [.rejected(Rejection(.refused, "no"))])
  }

  @Test("RED-08: both stages have the dependencies of the store")
  func dependencies() {
    let seen = Mutex<[Timestamp]>([])
    @Sendable func note() { seen.withLock { $0.append(DependencyValues.current.date()) } }
    var values = DependencyValues()
    values.date = .constant(Timestamp(nanoseconds: 5))
    let stage = Stage(
      name: "clock",
      before: { (_, _, _) throws(Rejection) in
        note()
        return .proceed
      },
      after: { _, _, _ in
        note()
        return .none
      })
    var bench = Bench(
      Trace(), Script.script { _ in .none }, middleware: [stage], dependencies: values)
    bench.send("a")
    #expect(seen.withLock { $0 } == [Timestamp(nanoseconds: 5), Timestamp(nanoseconds: 5)])
  }

  @Test("2.2: a stub middleware keeps every action from the feature, and the log has them")
  func stub() {
    var bench = makeBench(
      Stage(name: "stub", before: { (_, _, _) throws(Rejection) in .swallow }))
    bench.send("a")
    bench.send("b")
    #expect(bench.log == [] && bench.core.log.all.map(\.name) == ["a", "b"])
  }
}
