import Lockstep
import LockstepTesting
import Testing

/// The tests of TCA's `BindingTests`, and what is ours.
@Suite("Bindings")
struct BindingTests {
  struct Player: Reducer {
    @ObservableState struct State: Equatable {
      @Settable var volume = 5
      @Settable var band: Band = Band()
      @Settable var isMuted = false
      var changes = 0

      @ObservableState struct Band: Equatable {
        var low = 0
        var high = 0
      }
    }

    @Action enum Action: Equatable {
      case mute
      case set(State.Setting)
    }

    var body: some Reducer<State, Action> {
      BindingReducer()
        .onChange(of: \.volume) { old, new in
          Reduce { state, action in
            state.changes += 1
            return .run(name: "turn") { send in if new > 8 { await send(.mute) } }
          }
        }
      Reduce { (state: inout State, action: Action) throws(Rejection) in
        switch action {
        case .mute: state.isMuted = true
        case .set(.volume(let volume)):
          guard 0...10 ~= volume else { throw Rejection(.refused, "\(volume) is not 0 to 10") }
        case .set(.band): state.band.high += 1
        case .set: break
        }
        return .none
      }
    }
  }

  private func makeStore() -> TestStore<Player> {
    TestStore(initialState: Player.State()) { Player() }
  }

  @Test func `testNestedBindingState: a reducer after it changes the field once more`() async {
    let store = makeStore()
    await store.send(.set(\.band, Player.State.Band(low: 1, high: 2))) {
      $0.band = Player.State.Band(low: 1, high: 3)
    }
    await store.finish()
  }

  @Test func `testBindingActionUpdatesRespectsPatternMatching: the other fields stay`() async {
    let store = makeStore()
    await store.send(.set(\.isMuted, true)) { $0.isMuted = true }
    await store.send(.set(.volume(6))) {
      $0.volume = 6
      $0.changes = 1
    }
    await store.finish()
  }

  @Test func `onChange follows a field that is set, and only where it differs`() async {
    let store = makeStore()
    await store.send(.set(\.volume, 9)) {
      $0.volume = 9
      $0.changes = 1
    }
    await store.receive(.mute) { $0.isMuted = true }
    await store.send(.set(\.volume, 9))
    await store.send(.set(\.isMuted, false)) { $0.isMuted = false }
    await store.finish()
  }

  @Test func `a reducer after it rejects a value, and the field keeps its old one`() async {
    let store = makeStore()
    await store.send(.set(\.volume, 11), rejected: Rejection(.refused, "11 is not 0 to 10"))
    #expect(store.state == Player.State())
    await store.finish()
  }

  @Test func `the log names the field`() async {
    let store = makeStore()
    await store.send(.set(\.isMuted, true)) { $0.isMuted = true }
    #expect(store.log.newest?.name == "set.isMuted")
    await store.finish()
  }

  struct Radio: Reducer {
    @ObservableState struct State: Equatable { @Settable var station = "" }
    @Action enum Action: Equatable { case tune(State.Setting) }
    var body: some Reducer<State, Action> { BindingReducer(action: \.tune) }
  }

  struct Car: Reducer {
    @ObservableState struct State: Equatable {
      var left = Radio.State()
      var right = Radio.State()
    }
    @Action enum Action: Equatable {
      case left(Radio.Action)
      case right(Radio.Action)
    }
    var body: some Reducer<State, Action> {
      Scope(state: \.left, action: \.left) { Radio() }
      Scope(state: \.right, action: \.right) { Radio() }
    }
  }

  @Test func `the case may have another name, and the feature be a child`() async {
    let store = TestStore(initialState: Car.State()) { Car() }
    await store.send(.right(.tune(.station("news")))) { $0.right.station = "news" }
    #expect(store.log.newest?.name == "right.tune.station")
    await store.finish()
  }
}
