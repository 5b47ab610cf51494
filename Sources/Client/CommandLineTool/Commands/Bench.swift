import ArgumentParser
import Documents
import EventLoop
import Glibc
import LockstepClient
import Values

struct Bench: SendingCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure round trips and pipelined increments.",
    discussion: """
      A counter is made at a path of its own and removed at the end. First one increment at a \
      time, until this client's mirror shows it; then many at once, within the daemon's window, \
      until the last is acknowledged. Every other client of the document pays for it too.

      EXAMPLES:
        lockstep bench --round-trips 1000 --increments 100000
      """)

  @Option(
    help: ArgumentHelp("How many round trips.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var roundTrips = 5_000

  @Option(
    help: ArgumentHelp("How many increments in flight.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var increments = 200_000

  @Option(
    help: ArgumentHelp("The object that gets the counter.", valueName: "path"),
    completion: Completion.path, transform: PathArgument.init(_:))
  var under = PathArgument(.root)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let name = "lockstep-bench-\(getpid())-\(UInt32.random(in: 0 ... .max))"
      let path = Path(under.path.keys + [.text(name)])
      _ = try await client.send(.set(path, 0))
      Interruption.watch()
      let run = BenchRun(client: client, path: path)
      do {
        let mirror = try await client.mirror(of: path)
        let latencies = try await run.roundTrips(roundTrips, mirror)
        let rate = try await run.pipeline(increments, mirror)
        try run.check(mirror.state, roundTrips + increments)
        try show(latencies, rate)
      } catch {
        _ = try? await client.send(.remove(path))
        throw error
      }
      _ = try await client.send(.remove(path))
    }
  }

  private func show(_ latencies: Latencies, _ rate: Double) throws(Failure) {
    let output = Output(options)
    if output.isPretty {
      try output.lines(
        """
        round trips  \(latencies.summary)
        pipelined    \(UInt64(rate).grouped) increments a second, of \(UInt64(increments).grouped)
        """)
    } else {
      try output.line([
        "roundTrips": .integer(Int64(roundTrips)), "increments": .integer(Int64(increments)),
        "p50Microseconds": .double(latencies.quantile(0.5).inMicroseconds.rounded(to: 0.1)),
        "p99Microseconds": .double(latencies.quantile(0.99).inMicroseconds.rounded(to: 0.1)),
        "incrementsPerSecond": .integer(Int64(rate)),
      ])
    }
  }
}

/// The measurements, on a counter.
struct BenchRun: Sendable {
  let client: Client
  let path: Path
  private let clock = LoopClock()

  init(client: Client, path: Path) {
    self.client = client
    self.path = path
  }

  /// Send increments one by one, each after the mirror has shown the one before.
  func roundTrips(_ count: Int, _ mirror: Subscription<Value>) async throws -> Latencies {
    var latencies = Latencies()
    for _ in 0..<count {
      try Interruption.check()
      let start = clock.now
      try await mirror.send(DocumentAction.increment(path, by: 1))
      latencies.add(start.duration(to: clock.now))
    }
    return latencies
  }

  /// Keep as many increments in flight as the window admits. Returns how many were done per second.
  func pipeline(_ count: Int, _ mirror: Subscription<Value>) async throws -> Double {
    let start = clock.now
    let batch = 10_000
    var sent = 0
    while sent < count - 1 {
      try Interruption.check()
      let end = min(count - 1, sent + batch)
      for _ in sent..<end { mirror.post(DocumentAction.increment(path, by: 1)) }
      sent = end
      // A posted action is kept until it is acknowledged.
      while mirror.connection.unacknowledged > 2 * batch {
        try await clock.sleep(for: .milliseconds(1))
      }
    }
    try await mirror.send(DocumentAction.increment(path, by: 1))
    return Double(count) / start.duration(to: clock.now).inSeconds
  }

  /// Throw unless every increment was done once.
  func check(_ state: Value?, _ count: Int) throws(Failure) {
    guard state == .integer(Int64(count)) else {
      let found = state.map { JSON.text($0) } ?? "nothing"
      throw Failure(.differs, "the counter shows \(found), not \(count): did somebody change it?")
    }
  }
}
