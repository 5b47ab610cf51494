public import Lockstep

/// Leads a user home, a second after the login.
public struct GreetingMiddleware: Middleware {
  public let name = "greeting"
  @Dependency(\.clock) private var clock

  public init() {}

  public func after(
    _ action: AppAction, state: AppState, reduction: Reduction,
    context: MiddlewareContext<AppAction>
  ) -> Effect<AppAction> {
    switch action {
    case .loginAction(.login): greet()
    case .loginAction(.logout), .loginAction(.evict): .cancel(id: CancelID.greeting)
    default: .none
    }
  }

  private func greet() -> Effect<AppAction> {
    .run(name: "greet") { [clock] send in
      try await clock.pause(for: .seconds(1))
      await send(.loginAction(.greeted))
      await send(.navigationAction(.popToRoot))
      await send(.tabAction(.select(.home)))
    }
    .cancellable(id: CancelID.greeting, cancelInFlight: true)
  }

  private enum CancelID { case greeting }
}
