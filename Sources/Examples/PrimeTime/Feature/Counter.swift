import Lockstep

/// Counts a number, without knowledge of the app around it.
struct Counter: Reducer {
  func reduce(into count: inout Int, action: CounterAction) -> Effect<CounterAction> {
    switch action {
    case .decrTapped: count -= 1
    case .incrTapped: count += 1
    }
    return .none
  }
}
