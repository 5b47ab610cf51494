public import Lockstep
public import Values

/// A feature with effects of every kind: they count, so that a mirror shows what they did.
public struct Errands: Reducer {
  @Dependency(\.clock) private var clock
  static let names = ["a", "b", "c", "d", "e"]

  public init() {}

  public var body: some Reducer<ErrandMap, ErrandAction> {
    Reduce<ErrandMap, ErrandAction> { (state, action) throws(Rejection) in
      guard case .errand(let errand, let name, let number) = action else { return .none }
      return try reduce(&state, errand, name, number)
    }
    .forEach(\.counters, action: \.child) { () -> ChildErrands in ChildErrands() }
  }

  public var lifecycle: Lifecycle<ErrandMap, ErrandAction> {
    .onStart { _ in .errand(.timer, "e", 900) }
  }

  private func reduce(
    _ state: inout ErrandMap, _ errand: Errand, _ name: String, _ number: Int
  ) throws(Rejection) -> Effect<ErrandAction> {
    change(&state, errand, name, number)
    if errand == .fail { throw Rejection(.refused, "failed as asked") }
    return work(errand, name, number)
  }

  private func change(
    _ state: inout ErrandMap, _ errand: Errand, _ name: String, _ number: Int
  ) {
    switch errand {
    case .set, .changed: state.counters.updateValue(number, forKey: name)
    case .remove: state.counters.removeValue(forKey: name)
    case .fail: state.counters.removeAll()
    case .accept, .cancel, .cancelInner, .hush: break
    case .add, .run, .send, .merge, .concatenate, .named, .debounce, .throttle, .timer, .owned,
      .inner, .flood, .failingWork, .swallowed, .doubled, .refused, .followed:
      state.counters.updateValue((state.counters[name] ?? 0) &+ 1, forKey: name)
    }
  }

  private func work(_ errand: Errand, _ name: String, _ number: Int) -> Effect<ErrandAction> {
    let pause = Duration.milliseconds(number % 3000)
    let work = run(name, number % 4, pause)
    switch errand {
    case .set, .add, .remove, .fail, .swallowed, .doubled, .refused, .changed, .followed:
      return .none
    case .run: return work
    case .send: return number > 0 ? .send(.errand(.send, name, min(number, 8) - 1)) : .none
    case .merge: return .merge(work, run("b", 1, pause), .send(.errand(.add, name, 1)))
    case .concatenate:
      return .concatenate(.send(.errand(.add, name, 1)), work, .send(.errand(.run, name, 1)), work)
    case .accept: return work.accepted
    case .named: return work.cancellable(id: name, cancelInFlight: number.isMultiple(of: 2))
    case .debounce: return work.debounce(id: "debounce \(name)", for: pause)
    case .throttle:
      return work.throttle(
        id: "throttle \(name)", for: pause, latest: number.isMultiple(of: 2))
    case .timer: return timer(name, number)
    case .owned:
      // Beside the owned work there is work without an owner, which starts owned work later.
      return .merge(
        Effect.concatenate(work, timer(name, number)).ownedByClient,
        .concatenate(work, .send(.errand(number.isMultiple(of: 5) ? .owned : .add, name, 301))))
    case .inner: return inner(name, pause)
    case .cancel: return .cancel(id: name)
    case .cancelInner: return cancelInner(name)
    case .flood: return number > 0 ? .send(.errand(.flood, name, number - 1)) : .none
    case .failingWork: return failingWork(name, number, pause)
    case .hush: return hush
    }
  }

  /// Adds to a counter `times` times, with pauses.
  private func run(_ name: String, _ times: Int, _ pause: Duration) -> Effect<ErrandAction> {
    .run(name: "run \(name)") { [clock] send in
      for _ in 0..<times {
        try await clock.pause(for: pause)
        await send(.errand(.add, name, 1))
      }
    }
  }

  private func timer(_ name: String, _ number: Int) -> Effect<ErrandAction> {
    .timer(every: .milliseconds(300 + number % 3000)) { .errand(.add, name, 1) }
      .cancellable(id: "timer \(name)", cancelInFlight: true)
  }

  /// Works concurrently inside the effect, with a named task for one part.
  private func inner(_ name: String, _ pause: Duration) -> Effect<ErrandAction> {
    .run(name: "inner \(name)") { [clock] send in
      async let first: Void = send(.errand(.add, name, 1))
      try? await withTaskCancellation(id: "inner \(name)", cancelInFlight: true) {
        try await clock.pause(for: pause)
        await Task.yield()
        await send(.errand(.add, name, 1))
      }
      await first
    }
  }

  private func cancelInner(_ name: String) -> Effect<ErrandAction> {
    .merge(
      .cancel(id: "inner \(name)"),
      .run(name: "cancel inner") { _ in await Task.cancel(id: "inner \(name)") })
  }

  private func failingWork(
    _ name: String, _ number: Int, _ pause: Duration
  ) -> Effect<ErrandAction> {
    struct Failure: Error {}
    let clock = clock
    let fail: @Sendable (Send<ErrandAction>) async throws -> Void = { _ in
      try await clock.pause(for: pause)
      throw Failure()
    }
    if number.isMultiple(of: 2) { return .run(name: "fails", operation: fail) }
    return .run(name: "fails", operation: fail) { _, send in await send(.errand(.add, name, 1)) }
  }

  private var hush: Effect<ErrandAction> {
    .merge(
      Self.names.flatMap { name -> [Effect<ErrandAction>] in
        [.cancel(id: "timer \(name)"), .send(.child(name, .hush))]
      })
  }
}

/// The work of one counter, which lives as long as the counter.
struct ChildErrands: Reducer {
  @Dependency(\.clock) private var clock

  func reduce(into state: inout Int, action: ChildErrand) throws(Rejection) -> Effect<ChildErrand> {
    switch action {
    case .step:
      state &+= 1
      return .none
    case .work:
      state &+= 1
      return .run(name: "child's work") { [clock] send in
        for _ in 0..<3 {
          try await clock.pause(for: .milliseconds(400))
          await send(.step)
        }
      }
    case .timer:
      return .timer(every: .milliseconds(700)) { .step }
        .cancellable(id: "timer", cancelInFlight: true)
    case .hush: return .cancel(id: "timer")
    }
  }
}

/// A middleware that does everything that a middleware may do.
struct ErrandMiddleware: Middleware {
  func before(
    _ action: inout ErrandAction, state: ErrandMap, context: inout MiddlewareContext<ErrandAction>
  ) throws(Rejection) -> MiddlewareVerdict {
    guard case .errand(let errand, let name, let number) = action else { return .proceed }
    switch errand {
    case .swallowed:
      // Swallowed, but sometimes with an added action.
      if number.isMultiple(of: 3) { context.add(.errand(.add, name, 1)) }
      return .swallow
    case .doubled: context.add(.errand(.add, name, 1))
    case .refused: throw Rejection(.denied, "refused as asked")
    case .changed: action = .errand(.changed, name, number / 2)
    default: break
    }
    return .proceed
  }

  func after(
    _ action: ErrandAction, state: ErrandMap, reduction: Reduction,
    context: MiddlewareContext<ErrandAction>
  ) -> Effect<ErrandAction> {
    guard case .errand(.followed, let name, let number) = action else { return .none }
    let clock = DependencyValues.current.clock
    return .run(name: "follow") { send in
      try await clock.pause(for: .milliseconds(number % 500))
      await send(.errand(.add, name, 1))
    }
  }
}

// MARK: Random actions

extension ErrandAction {
  static func random(using random: inout SplitMix64) -> ErrandAction {
    let name = Errands.names[Int.random(in: 0..<Errands.names.count, using: &random)]
    let number = Int.random(in: 0..<3000, using: &random)
    if Int.random(in: 0..<5, using: &random) == 0 {
      let errands = ChildErrand.allCases
      return .child(name, errands[Int.random(in: 0..<errands.count, using: &random)])
    }
    let errand = Errand.allCases[Int.random(in: 0..<Errand.allCases.count, using: &random)]
    switch errand {
    case .flood:
      // Rarely longer than the daemon's own limit for a turn.
      let sizes = [10, 10, 100, 100, 100, 100, 100, 100, 100, 5000]
      let place = Int.random(in: 0..<40, using: &random)
      return .errand(.flood, name, place < sizes.count ? sizes[place] : 20)
    case .hush: return .errand(.add, name, 1)
    default: return .errand(errand, name, number)
    }
  }
}

extension SimulatedFeature<Errands, Value> {
  /// Effects and middleware in the daemon, mirrored as dynamic values.
  public static var errands: SimulatedFeature {
    var feature = SimulatedFeature(
      Errands(), mirroredAs: Value.self, initial: { ErrandMap() },
      action: { ErrandAction.random(using: &$0) },
      path: { random in
        let place = Int.random(in: 0..<Errands.names.count + 3, using: &random)
        return place < Errands.names.count ? [.text(Errands.names[place])] : .root
      })
    feature.middleware = [ErrandMiddleware()]
    feature.hush = .errand(.hush, "", 0)
    return feature
  }
}
