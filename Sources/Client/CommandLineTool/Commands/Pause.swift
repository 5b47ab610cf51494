import ArgumentParser
import EventLoop
import Values
import Wire

struct PauseDaemon: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Have the daemon do no action, to look around.",
    discussion: """
      Until 'lockstep resume', or for some seconds, actions of clients are rejected ('paused'), and \
      what effects send waits. Another pause replaces the end of this one. Reading goes on, and so do \
      'lockstep jump', 'undo' and 'redo', and presence: clients come and go. A daemon that ends does \
      first what waits, and one that is started anew is not paused. A daemon goes on by itself when \
      10,000 actions of effects wait.

      'lockstep status' says how long it is paused. Without a terminal: one object:
        paused  whether it is now
        was     whether it was before

      EXAMPLES:
        lockstep pause
        lockstep pause --for 60

        $ lockstep pause
        paused until 'lockstep resume'
        $ lockstep set /lamps '{}'
        lockstep: rejected: the daemon is paused, for somebody to look around: try again later.
        $ lockstep resume
        it goes on
        $ lockstep set /lamps '{}'
        revision 1
      """)

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Go on after this time.", valueName: "seconds"),
    transform: NumberArgument.within(1...ReportName.longestPause))
  var seconds: Int?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let report = try await client.report(.pause, seconds.map { ["\($0)"] } ?? [])
      let output = Output(options)
      guard output.isPretty else { return try output.line(report) }
      let end = seconds.map { "for \($0) s" } ?? "until 'lockstep resume'"
      try output.lines("paused " + output.faint(end))
    }
  }
}

struct Resume: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Have a daemon that is paused do actions again.",
    discussion: """
      What effects have sent meanwhile is done now, in order. See 'lockstep pause --help'.

      Without a terminal: one object:
        paused  whether it is now
        was     whether it was before

      EXAMPLES:
        lockstep resume
      """)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let report = try await client.report(.resume)
      let output = Output(options)
      guard output.isPretty else { return try output.line(report) }
      let wasPaused = report.child("was") == .bool(true)
      try output.lines(output.faint(wasPaused ? "it goes on" : "it was not paused"))
    }
  }
}
