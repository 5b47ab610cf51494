public import AppShellFeature
public import ArgumentParser
import Glibc
import LockstepClient

/// A window of the app: shows the tab, the route and the user, and sends actions.
@main struct AppShellClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "appshell", abstract: "See and change where appshelld's app is.",
    subcommands: [
      Select.self, Push.self, Pop.self, Home.self, Login.self, Logout.self, Evict.self, Crash.self,
      Watch.self,
    ])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<AppShell>) async throws -> Void) async throws {
    let app = try await MirrorStore<AppShell>.connect(.init(socket: socket, label: "appshell"))
    do { try await body(app) } catch {
      await app.connection.finish()
      throw error
    }
    await app.connection.finish()
  }

  func send(_ action: AppAction) async throws {
    try await with { app in
      try await app.send(action)
      print(app.state.summary)
    }
  }
}

extension Tab: ExpressibleByArgument {}

struct Select: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "tab", abstract: "Select a tab.")

  @Argument(help: "The tab to show.")
  var tab: Tab

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.tabAction(.select(tab))) }
}

struct Push: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Open a screen.")

  @Argument(help: "The screen to show.")
  var route: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.navigationAction(.push(route))) }
}

struct Pop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Close the screen.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.navigationAction(.pop)) }
}

struct Home: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Close all screens.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.navigationAction(.popToRoot)) }
}

struct Login: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Log in.")

  @Argument(help: "What to be called.")
  var user: String

  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.loginAction(.login(user))) }
}

struct Logout: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Log out.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.loginAction(.logout)) }
}

struct Evict: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Log out whoever is logged in; for the administrator.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.loginAction(.evict)) }
}

struct Crash: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Crash the daemon, if it allows that; for the administrator.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    // A daemon that crashes acknowledges nothing, and the action must not be sent again.
    var options = Connection.Options(socket: daemon.socket, label: "appshell")
    options.reconnects = false
    try await MirrorStore<AppShell>.connect(options).send(.crash)
  }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show where the app is, and each change of it, until interrupted.")

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { app in
      for await state in app.changes {
        print(state.summary)
        // Also when standard output is a pipe.
        fflush(nil)
      }
    }
  }
}
