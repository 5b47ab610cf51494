import ArgumentParser

/// A system monitor in two halves: a process that sends the data of `/proc`, and any number of
/// processes that show it.
@main
struct Monitor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "monitor",
    abstract: "Feed a Lockstep document with what /proc says, or follow it.",
    subcommands: [Feed.self, Follow.self, Summarize.self])
}

struct DaemonAddress: ParsableArguments {
  @Option(help: "The daemon's socket.")
  var socket: String?

  @Option(help: "What this process calls itself.")
  var label: String
}
