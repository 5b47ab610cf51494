public import Lockstep

/// The one state of the app. Every part of it has a default.
@ObservableState
public struct AppState: Equatable, Sendable {
  public var tabState = TabState()
  public var navigationState = NavigationState()
  public var loginState = LoginState()

  public init() {}
}

@ObservableState
public struct TabState: Equatable, Sendable {
  public var selected = Tab.home

  public init() {}
}

@ObservableState(frozen: true)
public enum Tab: String, CaseIterable, Equatable, Sendable {
  case home, search, profile
}

@ObservableState
public struct NavigationState: Equatable, Sendable {
  /// The open screens, the visible one last; none is the root of the tab.
  public var routes: [String] = []

  public init() {}
}

@ObservableState
public struct LoginState: Equatable, Sendable {
  public var user: String?
  /// A user has just logged in, and is being greeted. Not saved in files.
  @Ephemeral public var isGreeting = false

  public init() {}
}

/// The one action of the app; each part of the state has its own.
@Action
public enum AppAction: Equatable, Sendable {
  case tabAction(TabAction)
  case navigationAction(NavigationAction)
  case loginAction(LoginAction)
  /// The daemon has started.
  case launch
  /// A stored state replaces the state.
  case restore(AppState)
  /// For debugging: ask the daemon to trap.
  case crash
}

@Action
public enum TabAction: Equatable, Sendable {
  case select(Tab)
}

@Action
public enum NavigationAction: Equatable, Sendable {
  case push(String)
  case pop
  case popToRoot
}

@Action
public enum LoginAction: Equatable, Sendable {
  case login(String)
  case greeted
  case logout
  /// Log out the current user; for administrators.
  case evict
}
