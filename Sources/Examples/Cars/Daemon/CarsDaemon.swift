import ArgumentParser
import CarsFeature
import Lockstep
import LockstepServer

/// Owns a list of cars.
@main struct CarsDaemon: LockstepDaemon {
  static let configuration = DaemonConfiguration(
    name: "carsd", abstract: "Own a list of cars that takes a while to load.")

  @Option(help: ArgumentHelp("How long loading takes.", valueName: "milliseconds"))
  var delayMs = 2000

  @Option(help: ArgumentHelp("How many times loading fails at first.", valueName: "times"))
  var failures = 0

  var feature: some Reducer { Cars(delay: .milliseconds(delayMs)).reducer }

  func prepare(_ dependencies: inout DependencyValues) {
    dependencies.carProvider = dependencies.carProvider.failing(failures)
  }
}
