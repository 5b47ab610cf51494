import ArgumentParser
import CounterFeature
import Lockstep
import LockstepServer

/// Owns a counter.
@main struct CounterDaemon: LockstepDaemon {
  static let configuration = DaemonConfiguration(
    name: "counterd", abstract: "Own a counter, and know facts about its number.")

  @Option(
    help: ArgumentHelp(
      "The path of a program that is given a number and prints a fact about it.",
      discussion: "If it is not said, facts come from a table.", valueName: "path"))
  var factsCommand: String?

  var feature: some Reducer { Counter() }

  func prepare(_ dependencies: inout DependencyValues) {
    if let factsCommand { dependencies.numberFacts = .command(factsCommand) }
  }
}
