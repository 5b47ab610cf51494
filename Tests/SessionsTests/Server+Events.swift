import DaemonCore
import Lockstep
import Wire

/// Events whose time is irrelevant to most tests: the server's clock never goes back.
extension Server {
  mutating func act(_ action: R.Action) { handle(.acted(action)) }

  mutating func reserveScopes(of image: HandOver<R.State>) {
    handle(.scopesReserved(image.connections.flatMap { $0.subscriptions.map(\.scope) }))
  }

  private mutating func handle(_ event: Event<R.Action>) {
    var commands: [Command] = []
    handle(event, at: Instant(nanoseconds: 0), into: &commands)
  }
}
