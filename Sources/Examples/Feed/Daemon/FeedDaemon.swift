import ArgumentParser
import FeedFeature
import Lockstep
import LockstepServer

@main
struct FeedDaemon: LockstepDaemon {
  static var configuration: DaemonConfiguration {
    DaemonConfiguration(
      name: "feedd", abstract: "Follows a remote, and keeps its latest messages.")
  }

  @Option(help: ArgumentHelp("The Unix socket of the remote.", valueName: "path"))
  var remote: String

  var feature: Feed { Feed() }

  func prepare(_ dependencies: inout DependencyValues) {
    dependencies.webSocket = .unixSocket(at: remote)
  }
}
