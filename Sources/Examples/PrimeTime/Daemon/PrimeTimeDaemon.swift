import ArgumentParser
import Glibc
import Lockstep
import LockstepServer
import PrimeTimeFeature

@main
struct PrimeTimeDaemon: LockstepDaemon {
  static var configuration: DaemonConfiguration {
    DaemonConfiguration(
      name: "primetimed", abstract: "Counts, and keeps the favorite primes.")
  }

  var feature: PrimeTime { PrimeTime() }

  func prepare(_ dependencies: inout DependencyValues) {
    dependencies.writeLine = { line in
      let bytes = Array("\(line)\n".utf8)
      _ = write(STDERR_FILENO, bytes, bytes.count)
    }
  }
}
