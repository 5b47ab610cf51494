import Lockstep

/// The user who is logged in, if any.
struct Account: Reducer {
  func reduce(into user: inout User?, action: AccountAction) -> Effect<AccountAction> {
    switch action {
    case .login(let newUser): user = newUser
    case .logout: user = nil
    }
    return .none
  }
}
