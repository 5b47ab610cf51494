public import Lockstep

/// Writes a line when an action arrives, and one with the new state when it has been reduced.
public struct StateLoggingMiddleware: Middleware {
  public let name: String
  @Dependency(\.writeLine) private var writeLine

  public init(name: String = "logging") { self.name = name }

  public func before(
    _ action: inout AppAction, state: AppState, context: inout MiddlewareContext<AppAction>
  ) throws(Rejection) -> MiddlewareVerdict {
    writeLine("\(name): \(action.name), from \(context.cause.origin)")
    return .proceed
  }

  public func after(
    _ action: AppAction, state: AppState, reduction: Reduction,
    context: MiddlewareContext<AppAction>
  ) -> Effect<AppAction> {
    writeLine("\(name): \(action.name) led to \(state.summary)")
    return .none
  }
}

extension AppState {
  /// The state on one line: `tab search, route /books/7, user ada`.
  public var summary: String {
    let route = navigationState.routes.map { "/\($0)" }.joined()
    let user = loginState.user.map { "user \($0)" } ?? "nobody"
    return "tab \(tabState.selected), route \(route.isEmpty ? "/" : route), \(user)"
  }
}

extension DependencyValues {
  /// Writes a line of the log.
  public var writeLine: @Sendable (String) -> Void {
    get { self[WriteLineKey.self] }
    set { self[WriteLineKey.self] = newValue }
  }
}

private enum WriteLineKey: DependencyKey {
  static var liveValue: @Sendable (String) -> Void { { print($0) } }
  static var testValue: @Sendable (String) -> Void { { _ in } }
}
