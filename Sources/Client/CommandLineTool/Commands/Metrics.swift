import ArgumentParser
import EventLoop
import Values
import Wire

struct Metrics: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "metrics",
    abstract: "The daemon's measurements, as Prometheus reads them.",
    discussion: """
      Text in the format of OpenMetrics, with and without a terminal. With --json one object: each \
      family by its name, with its type and its samples.

      EXAMPLES:
        lockstep metrics >/var/lib/node_exporter/lockstep.prom
        lockstep --json metrics | jq '.lockstep_revisions.samples[0].value'
      """)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let output = Output(options)
      guard case .text(let text) = try await client.report(.metrics) else {
        throw Failure(.goodbye, "the daemon's metrics are no text.")
      }
      if options.json { return try output.line(MetricFamilies.value(of: text)) }
      let lines = text.hasSuffix("\n") ? String(text.dropLast()) : text
      try output.lines(lines.escapingControls(keeping: "\n"))
    }
  }
}
