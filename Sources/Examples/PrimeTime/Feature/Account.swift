import Lockstep

/// Who is logged in, if anybody is.
struct Account: Reducer {
  func reduce(into user: inout User?, action: AccountAction) -> Effect<AccountAction> {
    switch action {
    case .login(let newUser): user = newUser
    case .logout: user = nil
    }
    return .none
  }
}
