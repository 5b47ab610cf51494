import AppShellFeature
import ArgumentParser
import Glibc
import Lockstep
import LockstepServer

@main
struct AppShellDaemon: LockstepDaemon {
  static var configuration: DaemonConfiguration {
    DaemonConfiguration(
      name: "appshelld", abstract: "Keeps the tab, the route and the login of an app.")
  }

  @Option(help: ArgumentHelp("Keep the state in this file.", valueName: "file"))
  var store: String?

  @Option(help: ArgumentHelp("The user who may evict and crash.", valueName: "uid"))
  var administrator = UInt64(getuid())

  @Flag(help: "Let the administrator crash the daemon, to see its report.")
  var allowCrash = false

  var feature: AppShell { AppShell() }

  var middleware: [any Middleware<AppState, AppAction>] {
    [
      StateLoggingMiddleware(),
      AuthorizationMiddleware { [administrator] action, client, _ in
        action.mayBeSent(by: client.uid, administrator: administrator)
      },
      UserNameMiddleware(),
      PersistenceMiddleware(),
      CrashReportMiddleware(actions: 10),
      CrashMiddleware(isAllowed: allowCrash),
      GreetingMiddleware(),
    ]
  }

  func prepare(_ dependencies: inout DependencyValues) {
    if let store { dependencies.storage = .file(at: store) }
    dependencies.writeLine = { line in
      let bytes = Array("\(line)\n".utf8)
      _ = write(STDERR_FILENO, bytes, bytes.count)
    }
  }
}
