import Lockstep
import Testing

private struct Hidden: Reducer {
  @ObservableState struct State: Equatable {
    var count = 0
    let id: Int
    var part = Part()
    @ObservableState struct Part: Equatable { var tags: SyncMap<Int, String> = [:] }
    @ObservableState(frozen: true) enum Screen: Equatable { case list, row(Int) }
  }

  @Action enum Action: Equatable {
    case increment
    case part(PartAction)
    @Action enum PartAction: Equatable { case tag(Int, String) }
  }

  func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .increment: state.count += 1
    case .part(.tag(let id, let text)): state.part.tags[id] = text
    }
    return .none
  }
}

@Suite struct PrivateTests {
  @Test func `a feature that is private to its file works like any other`() throws {
    var state = Hidden.State(id: 7)
    let old = state
    _ = Hidden().reduce(into: &state, action: .part(.tag(1, "a")))
    _ = Hidden().reduce(into: &state, action: .increment)
    try expectLaw(from: old, to: state)
    #expect(try decoded(Hidden.State.self, bytes(state)) == state)
    #expect(Hidden.Action.part(.tag(1, "a")).name == "part.tag")
  }
}
