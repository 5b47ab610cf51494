import Lockstep
import LockstepTesting
import Synchronization
import Testing

/// The tests of TCA's `DependencyKeyWritingReducerTests`, and what is ours.
@Suite("Dependencies of a reducer")
struct DependencyReducerTests {
  @Test func testWritingFusion() async {
    // Modifiers that follow each other are one reducer.
    let reducer: DependencyReducer<Feature> = Feature()
      .dependency(\.myValue, 42)
      .dependency(\.myValue, 1729)
      .dependency(\.myValue, 1)
    await expect(42, of: reducer)
  }

  @Test func testTransformFusion() async {
    let reducer: DependencyReducer<Feature> = Feature()
      .transformDependency(\.myValue) { $0 = 42 }
      .transformDependency(\.myValue) { $0 = 1729 }
      .transformDependency(\.myValue) { $0 = 1 }
    await expect(42, of: reducer)
  }

  @Test func testWritingFusionOrder() async {
    await expect(42, of: Feature().dependency(\.myValue, 42).dependency(\.myValue, 1729))
  }

  @Test func testTransformFusionOrder() async {
    await expect(
      421,
      of: Feature().transformDependency(\.myValue) { $0 = $0 * 10 + 1 }
        .transformDependency(\.myValue) { $0 = 42 })
  }

  @Test func testWritingOrder() async {
    await expect(
      42,
      of: CombineReducers { Feature().dependency(\.myValue, 42) }.dependency(\.myValue, 1729))
  }

  @Test func testTransformOrder() async {
    await expect(
      421,
      of: CombineReducers { Feature().transformDependency(\.myValue) { $0 = $0 * 10 + 1 } }
        .transformDependency(\.myValue) { $0 = 42 })
  }

  @Test func testDependency_EffectOfEffect() async {
    let store = TestStore(initialState: Feature.State()) { Feature().dependency(\.myValue, 42) }
    await store.send(.tap) { $0.value = 42 }
    await store.receive(.response(42)) { $0.value = 84 }
    await store.receive(.otherResponse(42)) { $0.value = 126 }
    await store.finish()
  }

  @Test func `a sibling keeps the dependencies of the store`() async {
    let store = TestStore(initialState: Pair.State()) {
      Pair()
    } withDependencies: {
      $0.myValue = 7
    }
    await store.send(.left(.tap)) { $0.left.value = 42 }
    await store.receive(.left(.response(42))) { $0.left.value = 84 }
    await store.receive(.left(.otherResponse(42))) { $0.left.value = 126 }
    await store.send(.right(.tap)) { $0.right.value = 7 }
    await store.receive(.right(.response(7))) { $0.right.value = 14 }
    await store.receive(.right(.otherResponse(7))) { $0.right.value = 21 }
    await store.finish()
  }

  @Test func `the reduction keeps its origin, its time and its rejection`() async {
    let rejection = Rejection(.refused, "no, client 4 (pid 4, uid 1000)")
    let store = TestStore(initialState: Trace()) {
      Reduce { (_: inout Trace, _: Act) throws(Rejection) in
        let origin = DependencyValues.current.origin
        throw Rejection(.refused, "no, \(origin.map { "\($0)" } ?? "nobody")")
      }
      .dependency(\.myValue, 42)
    }
    await store.send("go", from: .client(session: 4), rejected: rejection)
    await store.finish()
  }

  @Test func `the life cycle is that of the reducer`() {
    let feature = Feature().dependency(\.myValue, 42)
    let starts = feature.composedLifecycle.actions(for: .started(.first), in: Feature.State())
    #expect(starts == [.tap])
  }

  /// Sends `tap` to a store whose own value is 0.
  private func expect<R: Reducer<Feature.State, Feature.Action>>(
    _ value: Int, of reducer: R, at location: Testing.SourceLocation = #_sourceLocation
  ) async {
    let store = TestStore(initialState: Feature.State()) {
      reducer
    } withDependencies: {
      $0.myValue = 0
    }
    store.exhaustivity = .off
    await store.send(.tap)
    #expect(store.state.value == value, sourceLocation: location)
    await store.skipReceivedActions(strict: false)
    await store.finish()
  }
}

private struct Feature: Reducer {
  struct State: Described { var value = 0 }

  enum Action: DescribedAction {
    case tap
    case response(Int)
    case otherResponse(Int)
  }

  @Dependency(\.myValue) var myValue

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    state.value += myValue
    switch action {
    case .tap: return .run { send in await send(.response(myValue)) }
    case .response: return .run { send in await send(.otherResponse(myValue)) }
    case .otherResponse: return .none
    }
  }

  var lifecycle: Lifecycle<State, Action> { .onStart { _ in .tap } }
}

private struct Pair: Reducer {
  struct State: Described {
    var left = Feature.State()
    var right = Feature.State()
  }

  enum Action: DescribedAction, CasePathable {
    case left(Feature.Action)
    case right(Feature.Action)

    struct AllCasePaths: Sendable {
      var left: CasePath<Action, Feature.Action> {
        CasePath(
          embed: { .left($0) }, extract: { if case .left(let own) = $0 { own } else { nil } })
      }
      var right: CasePath<Action, Feature.Action> {
        CasePath(
          embed: { .right($0) }, extract: { if case .right(let own) = $0 { own } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    CombineReducers {
      Scope(state: \.left, action: \.left) { Feature() }
    }
    .dependency(\.myValue, 42)
    Scope(state: \.right, action: \.right) { Feature() }
  }
}

private enum MyValueKey: DependencyKey {
  static let liveValue = 0
  static let testValue = 0
}

extension DependencyValues {
  fileprivate var myValue: Int {
    get { self[MyValueKey.self] }
    set { self[MyValueKey.self] = newValue }
  }
}
