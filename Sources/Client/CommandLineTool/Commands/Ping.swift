import ArgumentParser
import EventLoop
import LockstepClient
import Values

struct Ping: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ping",
    abstract: "Measure round trips to the daemon.",
    discussion: """
      EXAMPLES:
        lockstep ping --count 100
        lockstep ping --count 1 --timeout 1
      """)

  @Option(
    help: ArgumentHelp("How many: 5 by default.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var count = 5

  @Option(
    help: ArgumentHelp("Wait so long between two; not at all by default.", valueName: "seconds"),
    transform: Seconds.read)
  var interval: Seconds?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let output = Output(options)
      var latencies = Latencies()
      for number in 1...count {
        if number > 1, let interval { try await LoopClock().sleep(for: interval.duration) }
        let time = try await client.connection.ping()
        latencies.add(time)
        if output.isPretty {
          try output.lines("\(number): \(time.formatted)")
        } else {
          try output.line(["microseconds": .double(time.inMicroseconds.rounded(to: 0.1))])
        }
      }
      if output.isPretty && count > 1 { try output.lines(output.faint(latencies.summary)) }
    }
  }
}
