import Lockstep
import LockstepTesting
import Testing
import Values

/// Requests in a bad world: lost connections, stops and crashes of the daemon.
@Suite struct LoadingWorldTests {
  struct City: Reducer {
    @ObservableState struct State: Equatable {
      var visits = 0
      var forecast = Loadable<Int, String>()
    }

    @Action enum Action: Equatable {
      case visit
      case stop
      case forecast(LoadableAction<Int, String>)
    }

    @Dependency(\.clock) var clock

    var body: some Reducer<State, Action> {
      Reduce { state, action in
        switch action {
        case .visit: state.visits += 1
        case .stop: return .cancel(id: "forecast")
        case .forecast: break
        }
        return .none
      }
      .loading(\.forecast, action: \.forecast, for: \.visits) { visits in
        try await clock.pause(for: .milliseconds(100 * (visits % 7)))
        if visits % 3 == 0 { throw Offline() }
        return visits
      }
    }
  }

  struct Country: Reducer {
    @ObservableState struct State: Equatable {
      var capital = City.State()
      var cities: SyncMap<Int, City.State> = [1: City.State(), 2: City.State()]

      /// How many values say that they are being loaded.
      var loading: Int {
        (capital.forecast.isLoading ? 1 : 0) + cities.count { $0.value.forecast.isLoading }
      }
    }

    @Action enum Action: Equatable {
      case capital(City.Action)
      case city(Int, City.Action)
    }

    var body: some Reducer<State, Action> {
      Scope(state: \.capital, action: \.capital) { City() }
      Reduce { _, _ in .none }.forEach(\.cities, action: \.city) { City() }
    }
  }

  struct Offline: Error {}

  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func `a value is loading exactly while its request runs, whatever happens`(seed: UInt64) throws {
    let store = try SyncTestStore(
      initialState: Country.State(), seed: seed, mirrors: 2, misfortunes: .all
    ) {
      Country()
    }
    let actions: [City.Action] = [
      .forecast(.load), .visit, .forecast(.load), .forecast(.cancel), .stop, .forecast(.retry),
    ]
    var random = SplitMix64(seed)
    for _ in 0..<40 {
      let action = actions[Int(random.next() % 6)]
      let place = Int(random.next() % 3)
      try store.send(place == 0 ? .capital(action) : .city(place, action), from: place % 2)
      try store.run(steps: 12)
      if random.next() % 8 == 0 { try store.advance(by: .milliseconds(50)) }
    }
    try store.settle()
    #expect(store.state.loading == store.runningEffects.count)
    try store.advance(by: .seconds(2))
    try store.settle()
    #expect(store.state.loading == 0 && store.runningEffects.isEmpty)
    #expect(store.mirror(0).state == store.state && store.mirror(1).state == store.state)
  }
}
