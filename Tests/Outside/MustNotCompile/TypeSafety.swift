import Lockstep

// RED-02, type safety at compile time. Scripts/test-outside compiles this beside a feature, and expects
// each error that is named here, in the line below, and no other.

public struct Lamp: Reducer {
  @ObservableState public struct State: Equatable {
    public var isOn = false
  }

  @Action public enum Action: Equatable {
    case toggle
    case dim(Int)
  }

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .toggle:
      // error: cannot assign value of type 'String' to type 'Bool'
      state.isOn = "on"
      return .none
    case .dim(let level):
      // error: value of type 'Lamp.State' has no member 'level'
      state.level = level
      // error: type 'Lamp.Action' has no member 'blink'
      return .send(.blink)
    }
  }
}
