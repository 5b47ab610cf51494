import CarsFeature
import Lockstep
import LockstepTesting
import Testing

@Suite struct CarsTests {
  private typealias List = Cars.State
  private static let models = [
    CarModel(brand: "BMW", name: "520d"),
    CarModel(brand: "Mercedes-Benz", name: "E-class"),
    CarModel(brand: "KIA", name: "K5"),
    CarModel(brand: "HYUNDAE", name: "AVANTE"),
  ]

  /// Cars from a provider, always shuffled in the same way.
  private func store(
    _ state: Cars.State = Cars.State(), _ random: RandomSource = RandomSource { .max },
    cars: @escaping @Sendable () async throws -> [CarModel] = { models }
  ) -> TestStore<ReactorReducer<Cars>> {
    TestStore(initialState: state) {
      Cars().reducer
    } withDependencies: {
      $0.random = random
      $0.carProvider = CarProvider(cars: cars)
    }
  }

  /// The cars as `shuffled` orders them with a random source that always returns the same number.
  private var shuffled: [CarModel] {
    let random = RandomSource { .max }
    return random { Self.models.shuffled(using: &$0) }
  }

  @Test("RKT-09: a list begins empty and not loading")
  func initialState() {
    #expect(Cars().initialState == Cars.State(loading: false, carList: []))
  }

  @Test("RKT-10, RKT-11, RKT-13: a reload makes three states, the last two after two seconds")
  func reload() async {
    let store = store(Cars.State(carList: [CarModel(brand: "old", name: "car")]))
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(loading: true))) { $0.loading = true }
    await store.clock.advance(by: .milliseconds(1999))
    #expect(store.state.carList.map(\.name) == ["car"])
    await store.clock.advance(by: .milliseconds(1))
    await store.receive(.mutation(.requestCarList(carList: shuffled))) { [shuffled] in
      $0.carList = shuffled
    }
    await store.receive(.mutation(.setLoading(loading: false))) { $0.loading = false }
    await store.finish()
  }

  @Test("RKT-11: the list is shuffled through the random dependency")
  func shuffling() async {
    #expect(shuffled != Self.models)
    #expect(Set(shuffled.map(\.name)) == Set(Self.models.map(\.name)))
  }

  @Test("RKT-12: reduce puts the mutation's value into a copy of the state")
  func reduce() {
    let cars = Cars()
    let loading = cars.reduce(state: List(), mutation: .setLoading(loading: true))
    #expect(loading == List(loading: true))
    #expect(
      cars.reduce(state: loading, mutation: .requestCarList(carList: Self.models))
        == List(loading: true, carList: Self.models))
  }

  @Test("RKT-08: the mutations of two reloads interleave")
  func interleaving() async {
    let store = store()
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(loading: true))) { $0.loading = true }
    await store.clock.advance(by: .seconds(1))
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(loading: true)))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.mutation(.requestCarList(carList: shuffled))) { [shuffled] in
      $0.carList = shuffled
    }
    await store.receive(.mutation(.setLoading(loading: false))) { $0.loading = false }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.mutation(.requestCarList(carList: shuffled)))
    await store.receive(.mutation(.setLoading(loading: false)))
    await store.finish()
  }

  @Test("RKT-08: a provider that fails ends its own stream, and the next reload works")
  func failing() async {
    struct NoCars: Error {}
    let store = store(cars: { throw NoCars() })
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(loading: true))) { $0.loading = true }
    await withKnownIssue {
      await store.clock.advance(by: .seconds(2))
      await store.finish()
    } matching: {
      "\($0)".contains("NoCars")
    }
    store.dependencies.carProvider = CarProvider { Self.models }
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(loading: true)))
    await store.clock.advance(by: .seconds(2))
    await store.receive(.mutation(.requestCarList(carList: shuffled))) { [shuffled] in
      $0.carList = shuffled
    }
    await store.receive(.mutation(.setLoading(loading: false))) { $0.loading = false }
  }

  @Test("RKT-07: mutations have no encoding, and no name in the schema")
  func hiddenMutation() {
    let names = "\(Cars.schema)"
    #expect(names.contains("reloadCarList"))
    for name in ["Mutation", "requestCarList", "setLoading"] { #expect(!names.contains(name)) }
  }
}
