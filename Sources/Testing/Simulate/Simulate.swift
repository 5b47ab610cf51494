import ArgumentParser
import DaemonCore
import Lockstep
import Simulator
import Values

/// Runs simulations, many or one. `Scripts/simulate` builds it with optimisation.
@main
struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Simulate a daemon, its clients, and a bad network between them.",
    discussion: "One seed is one run. A run that fails prints its seed; --seed repeats it.")

  enum Feature: String, ExpressibleByArgument, CaseIterable {
    /// `cards` are an array of identified elements; `views` are documents of which some users may see
    /// only parts; in `optimism` most actions show before they are decided, and in `rows` also in single
    /// rows of an array, by the rows' own reducer; in `jumps` an administrator goes back to the past, and
    /// has the daemon pause.
    case document, map, cards, errands, views, optimism, rows, jumps
  }

  @Option(help: "The one seed to run.")
  var seed: UInt64?

  @Option(help: "The seeds to run, as 1..2000.")
  var seeds: SeedRange = SeedRange(first: 1, last: 200)

  @Option(help: "How many things happen before everything comes to rest.")
  var steps = 600

  @Option(help: "What the daemon keeps; each in turn if not said.")
  var feature: Feature?

  @Option(help: "How many runs at a time.")
  var jobs = 2

  @Flag(help: "Write down what happens to each daemon, do it again, and compare.")
  var replay = false

  @Flag(help: "Say each seed before it runs, and its trace: for crashes, and to compare processes.")
  var verbose = false

  mutating func run() async throws {
    let range = seed.map { SeedRange(first: $0, last: $0) } ?? seeds
    let features = feature.map { [$0] } ?? Feature.allCases
    var summary = Summary()
    for feature in features {
      await run(feature, range, &summary)
    }
    summary.print()
    if summary.failures > 0 { throw ExitCode.failure }
  }

  private func run(_ feature: Feature, _ range: SeedRange, _ summary: inout Summary) async {
    let (steps, verbose, replay, jobs) = (steps, verbose, replay, UInt64(max(1, jobs)))
    await withTaskGroup(of: Summary.self) { group in
      for job in 0..<jobs {
        group.addTask {
          var summary = Summary()
          for seed in stride(from: range.first + job, through: range.last, by: Int(jobs)) {
            if verbose { Swift.print("\(feature) seed \(seed)") }
            summary.add(
              feature, Self.simulate(feature, seed, steps, isRecorded: replay), verbose: verbose)
          }
          return summary
        }
      }
      for await part in group { summary.merge(part) }
    }
  }

  private static func simulate(
    _ feature: Feature, _ seed: UInt64, _ steps: Int, isRecorded: Bool
  ) -> Result<SimulationReport, SimulationFailure> {
    do throws(SimulationFailure) {
      switch feature {
      case .document:
        var simulation = Simulation(seed: seed, of: .document) { $0.isRecorded = isRecorded }
        return .success(try simulation.run(steps: steps))
      case .map:
        var simulation = Simulation(seed: seed, of: .counters) { $0.isRecorded = isRecorded }
        return .success(try simulation.run(steps: steps))
      case .cards:
        var simulation = Simulation(seed: seed, of: .cards) { $0.isRecorded = isRecorded }
        return .success(try simulation.run(steps: steps))
      case .errands:
        var simulation = Simulation(seed: seed, of: .errands) { $0.isRecorded = isRecorded }
        return .success(try simulation.run(steps: steps))
      case .jumps:
        var simulation = Simulation(seed: seed, of: .document) {
          $0.administer()
          $0.isRecorded = isRecorded
        }
        return .success(try simulation.run(steps: steps))
      case .views:
        var simulation = Simulation(seed: seed, of: .document) {
          $0.drawViews(seed: seed)
          $0.isRecorded = isRecorded
        }
        return .success(try simulation.run(steps: steps))
      case .rows:
        var simulation = Simulation(seed: seed, of: .dealtCards) {
          $0.optimism = 700
          $0.isRecorded = isRecorded
        }
        return .success(try simulation.run(steps: steps))
      case .optimism:
        let adjust = { (plan: inout SimulationPlan) in
          plan.optimism = 700
          plan.isRecorded = isRecorded
        }
        switch seed % 4 {
        case 0:
          var simulation = Simulation(seed: seed, of: .counters, adjust)
          return .success(try simulation.run(steps: steps))
        case 1:
          var simulation = Simulation(seed: seed, of: .cards, adjust)
          return .success(try simulation.run(steps: steps))
        default:
          var simulation = Simulation(seed: seed, of: .document) {
            adjust(&$0)
            if seed % 8 == 2 { $0.drawViews(seed: seed) }
          }
          return .success(try simulation.run(steps: steps))
        }
      }
    } catch {
      return .failure(error)
    }
  }
}

/// A range of seeds, written `first..last`.
struct SeedRange: ExpressibleByArgument, CustomStringConvertible {
  var first: UInt64
  var last: UInt64

  init(first: UInt64, last: UInt64) {
    self.first = first
    self.last = last
  }

  init?(argument: String) {
    let ends = argument.split(separator: "..")
    guard ends.count == 2, let first = UInt64(ends[0]), let last = UInt64(ends[1]), first <= last
    else { return nil }
    self.init(first: first, last: last)
  }

  var description: String { "\(first)..\(last)" }
  var defaultValueDescription: String { description }
}

/// The results of many runs.
struct Summary: Sendable {
  var runs = 0
  var failures = 0
  var trace: UInt64 = 0
  var counts: [String: Int] = [:]

  mutating func add(
    _ feature: Simulate.Feature, _ result: Result<SimulationReport, SimulationFailure>,
    verbose: Bool
  ) {
    runs += 1
    switch result {
    case .success(let report):
      // The order in which runs end must not matter.
      trace &+= report.trace
      counts.merge(report.counts) { $0 + $1 }
      if verbose { Swift.print("\(feature) seed \(report.seed) trace \(report.trace)") }
    case .failure(let failure):
      failures += 1
      Swift.print("FAILED (\(feature)) \(failure)")
      Swift.print("  Scripts/simulate --feature \(feature) --seed \(failure.seed)")
    }
  }

  mutating func merge(_ other: Summary) {
    runs += other.runs
    failures += other.failures
    trace &+= other.trace
    counts.merge(other.counts) { $0 + $1 }
  }

  func print() {
    for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
      Swift.print("\(count)\t\(name)")
    }
    Swift.print("\(runs) runs, \(failures) failed, trace \(String(trace, radix: 16))")
  }
}
