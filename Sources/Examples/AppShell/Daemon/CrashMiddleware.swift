import AppShellFeature
import Lockstep

/// Traps on request, if the daemon permits that.
struct CrashMiddleware: Middleware {
  let isAllowed: Bool
  var name: String { "crash" }

  func before(
    _ action: inout AppAction, state: AppState, context: inout MiddlewareContext<AppAction>
  ) throws(Rejection) -> MiddlewareVerdict {
    guard case .crash = action else { return .proceed }
    guard isAllowed else {
      throw Rejection(.refused, "this daemon was not started with --allow-crash")
    }
    preconditionFailure("somebody asked the daemon to crash")
  }
}
