#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Measures the cost of changes and patches of the state types, and checks their bounds.
///
///     swift run -c release ValuesBenchmark [--quick] [--check] [--json]
///
/// Absolute times depend on the machine: compare only figures of one run.
@main
struct ValuesBenchmark {
  private static let usage = """
    usage: ValuesBenchmark [--quick] [--check] [--json]
      --quick  fewer rounds, and no whole maps of a million: less than 10 seconds
      --check  exit with 1 when a bound is missed
      --json   print JSON in place of a table
    """

  static func main() {
    let options = Set(CommandLine.arguments.dropFirst())
    guard options.isSubset(of: ["--quick", "--check", "--json"]) else {
      print(usage)
      exit(options == ["--help"] ? 0 : 64)
    }
    let rounds = options.contains("--quick") ? 129 : 1_025
    var report = Report()
    for (entries, operations) in [(1_000, 2_048), (100_000, 512), (1_000_000, 256)] {
      var benchmark = MapBenchmark(entries: entries, operations: operations)
      benchmark.run(rounds: rounds, into: &report)
    }
    var array = ArrayBenchmark(entries: 100_000, operations: 128)
    array.run(rounds: rounds, into: &report)
    for (entries, operations) in [(1_000, 256), (100_000, 128), (1_000_000, 64)] {
      var identified = IdentifiedBenchmark(entries: entries, operations: operations)
      identified.run(rounds: rounds, into: &report)
      if entries < 1_000_000 || !options.contains("--quick") { identified.runWhole(into: &report) }
    }
    print(options.contains("--json") ? report.json : report.table)
    if options.contains("--check") && report.hasMissed { exit(1) }
  }
}
