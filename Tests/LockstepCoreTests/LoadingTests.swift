import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

/// The tests of Redux Toolkit's `createAsyncThunk`, and what is ours.
@Suite("Loading")
struct LoadingTests {
  private func makeStore(_ backend: Backend) -> TestStore<Weather> {
    TestStore(initialState: Weather.State()) {
      Weather()
    } withDependencies: {
      $0.weather = backend
    }
  }

  @Test func `accepts arguments and dispatches the actions on resolve`() async {
    let store = makeStore(Backend { "sun in \($0)" })
    await store.send(.move("Rome")) { $0.city = "Rome" }
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.receive(.forecast(.loaded("sun in Rome"))) {
      $0.forecast = .loaded("sun in Rome")
      $0.loads = 1
    }
    await store.finish()
  }

  @Test func `accepts arguments and dispatches the actions on reject`() async {
    let store = makeStore(Backend { throw Offline(city: $0) })
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.receive(.forecast(.failed(.other("no net in Oslo")))) {
      $0.forecast = .failed(.other("no net in Oslo"))
    }
    #expect(store.state.forecast.phase == .failed)
    await store.finish()
  }

  @Test func `dispatches a rejected action with a customized payload (rejectWithValue)`() async {
    let store = makeStore(Backend { throw WeatherFailure.unknownCity($0) })
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.receive(.forecast(.failed(.unknownCity("Oslo")))) {
      $0.forecast = .failed(.unknownCity("Oslo"))
    }
    await store.finish()
  }

  @Test func `a request that fails keeps the former value, and retry loads again`() async {
    let answers = Answers("sun", Offline(city: "Oslo"), "rain")
    let store = makeStore(Backend { _ in try answers.next() })
    await store.send(.forecast(.retry))
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.receive(.forecast(.loaded("sun"))) {
      $0.forecast = .loaded("sun")
      $0.loads = 1
    }
    await store.send(.forecast(.retry))
    await store.send(.forecast(.load)) { $0.forecast = .loading(former: "sun") }
    await store.receive(.forecast(.failed(.other("no net in Oslo")))) {
      $0.forecast = .failed(.other("no net in Oslo"), former: "sun")
    }
    await store.send(.forecast(.retry)) { $0.forecast.begin() }
    #expect(store.state.forecast.value == "sun" && store.state.forecast.failure != nil)
    await store.receive(.forecast(.loaded("rain"))) {
      $0.forecast = .loaded("rain")
      $0.loads = 2
    }
    await store.finish()
  }

  @Test func `abort: cancel in flight leaves what was before, and nothing comes later`() async {
    let store = makeStore(.slow)
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.send(.forecast(.cancel)) { $0.forecast = .idle }
    await store.clock.advance(by: .seconds(5))
    #expect(store.runningEffects.isEmpty)
    // Without a request there is nothing to cancel.
    await store.send(.forecast(.cancel))
    await store.finish()
  }

  @Test func `abort after failure: the phase is failed again`() async {
    let store = TestStore(initialState: Weather.State(forecast: .failed(.other("once")))) {
      Weather().dependency(\.weather, .slow)
    }
    await store.send(.forecast(.retry)) { $0.forecast.begin() }
    await store.send(.forecast(.cancel)) { $0.forecast = .failed(.other("once")) }
    await store.finish()
  }

  @Test func `the latest request wins`() async {
    let store = makeStore(.slow)
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.clock.advance(by: .milliseconds(900))
    await store.send(.move("Rome")) { $0.city = "Rome" }
    await store.send(.forecast(.load))
    #expect(store.runningEffects.count == 1)
    await store.clock.advance(by: .milliseconds(900))
    await store.clock.advance(by: .milliseconds(100))
    await store.receive(.forecast(.loaded("slow Rome"))) {
      $0.forecast = .loaded("slow Rome")
      $0.loads = 1
    }
    await store.finish()
  }

  @Test func `a request that is cancelled by its name ends the loading, too`() async {
    let store = makeStore(.slow)
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    #expect(store.runningEffects.map(\.name) == ["forecast"])
    await store.send(.stop)
    await store.receive(.forecast(.cancel)) { $0.forecast = .idle }
    #expect(store.runningEffects.isEmpty)
    await store.finish()
  }

  @Test func `a request that gives up ends the loading, too`() async {
    let store = makeStore(Backend { _ in throw CancellationError() })
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.receive(.forecast(.cancel)) { $0.forecast = .idle }
    await store.finish()
  }

  @Test func `a shell that cancels the effect by its name ends the loading, too`() {
    var bench = Bench(Weather.State(), Weather())
    bench.send(.forecast(.load))
    #expect(bench.core.state.forecast.isLoading && bench.running == ["forecast"])
    bench.change { #expect($0.cancelEffects("forecast") == 1) }
    #expect(!bench.core.state.forecast.isLoading && bench.running == [])
  }

  @Test func `an outcome ends the request, and comes from it alone`() {
    var bench = Bench(Weather.State(), Weather())
    let denied = Rejection.Code.denied
    for outcome: Weather.Action in [.forecast(.loaded("forged")), .forecast(.failed(.other("")))] {
      guard case .rejected(let rejection)? = bench.send(outcome, from: .client(4)).first else {
        Issue.record("A client has set the outcome.")
        continue
      }
      #expect(rejection.code == denied)
    }
    #expect(bench.send(.forecast(.load), from: .client(4)) == [.changed(1)])
    // The state stays as it is, and the work goes on.
    #expect(bench.send(.forecast(.load), from: .client(4)) == [.accepted])
    #expect(bench.running == ["forecast"])
    #expect(bench.send(.forecast(.loaded("sun")), by: "forecast") == [.changed(2)])
    #expect(bench.running == [] && bench.core.state.forecast == .loaded("sun"))
    #expect(bench.send(.forecast(.loaded("late")), by: "forecast") == [])
    #expect(bench.core.state.forecast == .loaded("sun"))
  }

  @Test func `a daemon that restarts ends what it loaded, where the state says that it loads`() {
    let lifecycle = Weather().composedLifecycle
    var state = Weather.State()
    #expect(lifecycle.actions(for: .started(.crashed), in: state) == [])
    state.forecast.begin()
    #expect(lifecycle.actions(for: .started(.crashed), in: state) == [.forecast(.cancel)])
  }

  @Test func `a feature that loads is told of the start and of sessions as without`() {
    let lifecycle = Listening().loading(\.warnings, action: \.warnings) { [] }.composedLifecycle
    let state = Weather.State()
    #expect(lifecycle.actions(for: .started(.first), in: state) == [.stop])
    let ended = LifecycleEvent.session(.ended(session: 3, reason: .exited))
    #expect(lifecycle.actions(for: ended, in: state) == [.move("3")])
    #expect(lifecycle.watchesSessions)
  }

  @Test func `two requests of one feature do not disturb each other`() async {
    let store = makeStore(.slow)
    await store.send(.forecast(.load)) { $0.forecast = .loading() }
    await store.send(.warnings(.load)) { $0.warnings = .loading() }
    await store.send(.forecast(.cancel)) { $0.forecast = .idle }
    #expect(store.runningEffects.map(\.name) == ["alerts"])
    await store.clock.advance(by: .seconds(1))
    await store.receive(.warnings(.loaded(["slow all"]))) { $0.warnings = .loaded(["slow all"]) }
    await store.finish()
  }

  @Test func `exhaustivity: an outcome that the test does not receive is a failure`() async {
    await withKnownIssue {
      let store = makeStore(Backend { $0 })
      await store.send(.forecast(.load)) { $0.forecast = .loading() }
      await store.finish()
    } matching: {
      "\($0)".contains("unexpected action")
    }
  }
}

/// Names the sessions that end.
private struct Listening: Reducer {
  typealias State = Weather.State
  typealias Action = Weather.Action

  func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }

  var lifecycle: Lifecycle<State, Action> {
    .onStart { _ in .stop }.onSession { event, _ in [.move("\(event.session)")] }
  }
}

/// A feature with two values that are loaded.
struct Weather: Reducer {
  @ObservableState struct State: Equatable {
    var city = "Oslo"
    var forecast = Loadable<String, WeatherFailure>()
    var warnings = Loadable<[String], String>()
    var loads = 0
  }

  @Action enum Action: Equatable {
    case move(String)
    case stop
    case forecast(LoadableAction<String, WeatherFailure>)
    case warnings(LoadableAction<[String], String>)
  }

  @Dependency(\.weather) var weather

  var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .move(let city): state.city = city
      case .stop: return .cancel(id: "forecast")
      // The value has been changed already.
      case .forecast(.loaded(let value)) where state.forecast.value == value: state.loads += 1
      case .forecast, .warnings: break
      }
      return .none
    }
    .loading(\.forecast, action: \.forecast, for: \.city) { city in
      try await weather.forecast(city)
    } catch: { error in
      .other("\(error)")
    }
    .loading(\.warnings, action: \.warnings, name: "alerts") {
      [try await weather.forecast("all")]
    }
  }
}

@ObservableState(frozen: true) enum WeatherFailure: Error, Equatable {
  case unknownCity(String)
  case other(String)
}

private struct Offline: Error, CustomStringConvertible {
  let city: String
  var description: String { "no net in \(city)" }
}

struct Backend: Sendable {
  let forecast: @Sendable (String) async throws -> String

  init(_ forecast: @escaping @Sendable (String) async throws -> String) {
    self.forecast = forecast
  }

  /// Answers after a second.
  static let slow = Backend { city in
    try await DependencyValues.current.clock.pause(for: .seconds(1))
    return "slow \(city)"
  }
}

/// Answers that are given once each.
private final class Answers: Sendable {
  private let rest: Mutex<[Result<String, Offline>]>

  init(_ answers: any Sendable...) {
    rest = Mutex(
      answers.compactMap { answer in
        (answer as? String).map { .success($0) } ?? (answer as? Offline).map { .failure($0) }
      })
  }

  func next() throws -> String { try rest.withLock { $0.removeFirst() }.get() }
}

private enum BackendKey: DependencyKey {
  static let liveValue = Backend { _ in throw Offline(city: "nowhere") }
}

extension DependencyValues {
  fileprivate var weather: Backend {
    get { self[BackendKey.self] }
    set { self[BackendKey.self] = newValue }
  }
}
