import Access
import Lockstep
import LockstepClient
import LockstepStore
import Observation
import Synchronization
import Testing
import Values
import Wire

/// Bindings, requests and dependencies in a store that runs.
@Suite struct StoreFeaturesTests {
  struct Player: Reducer {
    @ObservableState struct State: Equatable {
      @Settable var volume = 5
      @Settable var title = ""
      var station = "none"
      var playlist = Loadable<[String], String>()
    }

    @Action enum Action: Equatable {
      case set(State.Setting)
      case tune
      case playlist(LoadableAction<[String], String>)
    }

    @Dependency(\.stations) var stations

    var body: some Reducer<State, Action> {
      BindingReducer()
      Reduce { state, action in
        if action == .tune { state.station = stations.name }
        return .none
      }
      .loading(\.playlist, action: \.playlist, for: \.station) { station in
        try await stations.playlist(station)
      }
    }
  }

  private typealias PlayerStore = Store<Player>

  private func makeStore(
    _ change: (inout DependencyValues) -> Void = { _ in }
  ) -> PlayerStore {
    .unchecked(
      initialState: Player.State(), warnings: .none, reducer: { Player() },
      withDependencies: change)
  }

  // MARK: Bindings

  @Test func `a binding reads a field and sets it by an action`() {
    let store = makeStore()
    let volume = store.binding(\.volume)
    volume.wrappedValue += 2
    #expect(store.volume == 7 && volume.wrappedValue == 7)
    #expect(store.log.newest?.name == "set.volume")
    store.send(.set(\.volume, 1))
    #expect(volume.wrappedValue == 1)
  }

  @Test func `reading a binding is observed`() {
    let store = makeStore()
    let volume = store.binding(\.volume)
    let told = Mutex(0)
    withObservationTracking {
      _ = volume.wrappedValue
    } onChange: {
      told.withLock { $0 += 1 }
    }
    store.send(.tune)
    #expect(told.withLock { $0 } == 0)
    volume.wrappedValue = 9
    #expect(told.withLock { $0 } == 1)
  }

  @MainActor @Test func `a binding belongs to the isolation in which it is made`() {
    let warnings = Mutex<[String]>([])
    let store = Store(
      initialState: Player.State(),
      warnings: StoreWarnings { text in
        warnings.withLock { $0.append(text) }
      }
    ) { Player() }
    let volume = store.binding(\.volume)
    volume.wrappedValue = 3
    #expect(store.volume == 3 && warnings.withLock { $0 } == [])
  }

  @Test func `a mirror sets a field and reads its own write, and a binding follows`() async throws {
    try await withDaemon(of: Player(), state: Player.State()) { socket, _ in
      let mirror = try await MirrorStore<Player>.connect(.at(socket))
      try await mirror.send(.set(\.volume, 7))
      let volume = mirror.binding(\.volume)
      #expect(volume.wrappedValue == 7)
      volume.wrappedValue = 8
      await eventually { volume.wrappedValue == 8 }
    }
  }

  @Test func `a binding of an optimistic mirror reads what it has just set`() async throws {
    try await withDaemon(of: Player(), state: Player.State()) { socket, daemon in
      let mirror = try await MirrorStore<Player>.connect(optimistic: Player(), .at(socket))
      let volume = mirror.binding(\.volume)
      await daemon.stop()
      for value in [8, 9] {
        volume.wrappedValue = value
        #expect(volume.wrappedValue == value && mirror.volume == value)
      }
      #expect(mirror.confirmed.volume == 5)
    }
  }

  @Test func `a mirror begins a request, and cannot send its outcome`() async throws {
    try await withDaemon(of: Player(), state: Player.State()) { socket, _ in
      let mirror = try await MirrorStore<Player>.connect(.at(socket))
      try await mirror.send(.playlist(.load))
      await eventually { mirror.playlist == .loaded([]) }
      let error = await #expect(throws: ClientError.self) {
        try await mirror.send(.playlist(.loaded(["forged"])))
      }
      guard case .rejected(let rejection)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(rejection.code == Rejection.Code.denied.rawValue)
      #expect(mirror.playlist == .loaded([]))
    }
  }

  @Test func `a policy permits fields one by one`() {
    let rights = Policy([
      Rule(isForEveryone: true, read: [.whole], act: [.name("set.volume"), .name("tune")])
    ]).rights(uid: 1, gid: 1)
    let state = Player.State()
    #expect(rights.refusal(of: Player.Action.set(.volume(3)), in: state) == nil)
    #expect(rights.refusal(of: Player.Action.set(.title("a")), in: state)?.code == .denied)
  }

  // MARK: Requests

  @Test func `a store loads, fails and retries`() async {
    let answers = Mutex<[Result<[String], Offline>]>([.failure(Offline()), .success(["a"])])
    let store = makeStore {
      $0.stations = Stations(name: "one") { _ in
        try answers.withLock { $0.removeFirst() }.get()
      }
    }
    await store.send(.playlist(.load)).finish()
    #expect(store.playlist == .failed("offline"))
    await store.send(.playlist(.retry)).finish()
    #expect(store.playlist == .loaded(["a"]) && store.effects.isEmpty)
  }

  @Test func `in a store, a request is cancelled in flight, and the latest wins`() async {
    let (started, start) = AsyncStream<String>.makeStream()
    let store = makeStore {
      $0.stations = Stations(name: "one") { station in
        start.yield(station)
        if station == "none" { try await Task.sleep(for: .seconds(1000)) }
        return [station]
      }
    }
    var requests = started.makeAsyncIterator()
    let first = store.send(.playlist(.load))
    #expect(await requests.next() == "none" && store.playlist.isLoading)
    store.send(.playlist(.cancel))
    #expect(store.playlist == .idle && store.effects.isEmpty)
    await first.finish()

    store.send(.playlist(.load))
    #expect(await requests.next() == "none")
    #expect(store.cancelEffects("playlist") == 1)
    #expect(store.playlist == .idle)

    let slow = store.send(.playlist(.load))
    #expect(await requests.next() == "none")
    store.send(.tune)
    await store.send(.playlist(.load)).finish()
    #expect(store.playlist == .loaded(["one"]))
    await slow.finish()
    #expect(store.playlist == .loaded(["one"]))
  }

  // MARK: Dependencies

  @Test func `a store takes the dependencies around it, for its reducers and its effects`() async {
    let store = withDependencies {
      $0.stations = Stations(name: "around") { ["\($0) list"] }
    } operation: {
      makeStore()
    }
    store.send(.tune)
    #expect(store.station == "around")
    await store.send(.playlist(.load)).finish()
    #expect(store.playlist.value == ["around list"])
    // What is not set around it is live.
    #expect(store.log.newest.map { $0.time > Timestamp(nanoseconds: 0) } == true)
  }

  @Test func `its own dependencies come first, and a store outside is not touched`() {
    let own = withDependencies {
      $0.stations = Stations(name: "around") { _ in [] }
    } operation: {
      makeStore { $0.stations = Stations(name: "own") { _ in [] } }
    }
    own.send(.tune)
    let outside = makeStore()
    outside.send(.tune)
    #expect(own.station == "own" && outside.station == "live")
  }
}

private struct Offline: Error, CustomStringConvertible { let description = "offline" }

struct Stations: Sendable {
  let name: String
  let playlist: @Sendable (String) async throws -> [String]
}

private enum StationsKey: DependencyKey {
  static let liveValue = Stations(name: "live") { _ in [] }
}

extension DependencyValues {
  fileprivate var stations: Stations {
    get { self[StationsKey.self] }
    set { self[StationsKey.self] = newValue }
  }
}
