import ArgumentParser
import Lockstep
import LockstepServer
import TodosFeature

/// Owns a list of todos.
@main struct TodosDaemon: LockstepDaemon {
  static let configuration = DaemonConfiguration(
    name: "todosd", abstract: "Own a list of todos that a file keeps.")

  @Option(
    help: ArgumentHelp(
      "The file that keeps the todos, one title a line.",
      discussion: "While there is none, everything fails.", valueName: "path"))
  var backend: String

  @Option(help: ArgumentHelp("How long the backend takes.", valueName: "milliseconds"))
  var delayMs = 0

  @Option(help: ArgumentHelp("How many todos are loaded at once.", valueName: "todos"))
  var pageSize = 20

  var feature: some Reducer { Todos() }

  func prepare(_ dependencies: inout DependencyValues) {
    dependencies.backend = .file(
      TodoFile(path: backend, pageSize: pageSize), delay: .milliseconds(delayMs),
      clock: dependencies.clock)
  }
}
