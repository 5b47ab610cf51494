public import Lockstep

/// A list of cars that can be reloaded, as in ReactorKit: an action becomes mutations, and each
/// mutation a state.
public struct Cars: Reactor {
  @ObservableState public struct State: Equatable, Sendable {
    public var loading = false
    public var carList: [CarModel] = []

    public init(loading: Bool = false, carList: [CarModel] = []) {
      self.loading = loading
      self.carList = carList
    }
  }

  @Action public enum Action: Equatable, Sendable {
    case reloadCarList
  }

  /// The mutations of the state, which never leave the daemon.
  public enum Mutation: Equatable, Sendable {
    case setLoading(loading: Bool)
    case requestCarList(carList: [CarModel])
  }

  public let initialState = State()
  private let delay: Duration

  @Dependency(\.carProvider) private var carProvider
  @Dependency(\.clock) private var clock
  @Dependency(\.random) private var random

  /// A list of cars whose loading takes `delay`.
  public init(delay: Duration = .seconds(2)) { self.delay = delay }

  public func mutate(action: Action, state: State) -> Mutations<Mutation> {
    switch action {
    case .reloadCarList:
      .concat(
        .just(.setLoading(loading: true)), requestCarList(), .just(.setLoading(loading: false)))
    }
  }

  public func reduce(state: State, mutation: Mutation) -> State {
    var newState = state
    switch mutation {
    case .setLoading(let loading): newState.loading = loading
    case .requestCarList(let carList): newState.carList = carList
    }
    return newState
  }

  private func requestCarList() -> Mutations<Mutation> {
    Mutations { send in
      try await clock.pause(for: delay)
      let cars = try await carProvider.cars()
      await send(.requestCarList(carList: random { cars.shuffled(using: &$0) }))
    }
  }
}

@ObservableState public struct CarModel: Equatable, Sendable {
  public var brand: String
  public var name: String

  public init(brand: String, name: String) {
    self.brand = brand
    self.name = name
  }
}
