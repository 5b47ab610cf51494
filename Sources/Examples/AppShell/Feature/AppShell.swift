public import Lockstep

/// The app's reducer: one pure function for each part of the state.
public struct AppShell: Reducer {
  public init() {}

  public var body: some Reducer<AppState, AppAction> {
    Scope(state: \.tabState, action: \.tabAction) {
      Reduce(redux: tabReducer)
    }
    Scope(state: \.navigationState, action: \.navigationAction) {
      Reduce(redux: navigationReducer)
    }
    Scope(state: \.loginState, action: \.loginAction) {
      Reduce(redux: loginReducer)
    }
    Reduce(redux: launchReducer)
  }

  public var lifecycle: Lifecycle<AppState, AppAction> { .onStart { _ in .launch } }
}

private func tabReducer(_ state: TabState, _ action: TabAction) -> TabState {
  var mutatingState = state
  switch action {
  case .select(let tab): mutatingState.selected = tab
  }
  return mutatingState
}

private func navigationReducer(
  _ state: NavigationState, _ action: NavigationAction
) -> NavigationState {
  var mutatingState = state
  switch action {
  case .push(let route): mutatingState.routes.append(route)
  case .pop: _ = mutatingState.routes.popLast()
  case .popToRoot: mutatingState.routes = []
  }
  return mutatingState
}

private func loginReducer(_ state: LoginState, _ action: LoginAction) -> LoginState {
  var mutatingState = state
  switch action {
  case .login(let user):
    mutatingState.user = user
    mutatingState.isGreeting = true
  case .greeted:
    mutatingState.isGreeting = false
  case .logout, .evict:
    mutatingState = LoginState()
  }
  return mutatingState
}

private func launchReducer(_ state: AppState, _ action: AppAction) -> AppState {
  if case .restore(let stored) = action { stored } else { state }
}
