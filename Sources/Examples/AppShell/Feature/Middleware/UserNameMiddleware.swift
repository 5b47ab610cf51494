public import Lockstep

/// Trims the name of a login, and swallows the login if nothing is left: the reducer sees no empty
/// names.
public struct UserNameMiddleware: Middleware {
  public let name = "user name"

  public init() {}

  public func before(
    _ action: inout AppAction, state: AppState, context: inout MiddlewareContext<AppAction>
  ) throws(Rejection) -> MiddlewareVerdict {
    guard case .loginAction(.login(let user)) = action else { return .proceed }
    let trimmed = user.trimmingSpaces
    if trimmed.isEmpty { return .swallow }
    action = .loginAction(.login(trimmed))
    return .proceed
  }
}

extension String {
  fileprivate var trimmingSpaces: String {
    let start = drop(while: \.isWhitespace)
    return String(start.reversed().drop(while: \.isWhitespace).reversed())
  }
}
