import ArgumentParser
import CommandLineTool
import EventLoop
import Glibc

/// Serves the page of the inspector on loopback.
@main
struct LockstepInspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lockstep-inspect",
    abstract: "Serve the page of 'lockstep inspect', which is how it is meant to be run.")

  @OptionGroup var options: InspectorOptions

  static func main() -> Never {
    StandardStreams.openClosed()
    Signals.ignoreBrokenPipe()
    Task.detached {
      do {
        var command = try parse()
        try await command.run()
        Glibc.exit(ExitStatus.done.rawValue)
      } catch {
        LockstepProgram.end(Self.self, by: error)
      }
    }
    while true { pause() }
  }

  mutating func run() async throws {
    try await options.check()
    try await PageServer(options).run()
  }
}
