import ArgumentParser

struct ReplayRecording: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Do again what a daemon has recorded, and compare.",
    discussion: """
      'lockstepd --record FILE' writes down every event of a daemon, so a recording is a report of a \
      fault, with all that the state has. Each event is handled again, in a process of its own, and at \
      once: nothing is sent, and no effect is run. What the daemon did then must be what it does now, or \
      what a newer version does; the first difference is named with its event. Status 10 if there is one, \
      11 if a file is no recording. A daemon with types of its own is replayed by a program that has them: \
      'Replay' of DaemonCore.

      The program 'lockstep-replay' does it, which is to be beside this one or in the PATH.

      EXAMPLES:
        lockstep replay fault.recording
        lockstep replay --until 40 fault.recording
      """)

  @Argument(
    help: "Recordings.", completion: .file(), transform: ArgumentOrder.unmarked)
  var files: [String]

  @Option(
    help: ArgumentHelp("Stop at this revision, and print the state.", valueName: "revision"),
    transform: NumberArgument.atLeast(0))
  var until: UInt64?

  @Flag(help: "Also handle an event during which the process ended, which may end this one.")
  var withLast = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if files.isEmpty { throw ValidationError("which recording? Name its file.") }
  }

  func run() throws {
    let options = until.map { ["--until", "\($0)"] } ?? []
    try ProgramPath.become(
      "lockstep-replay", options + (withLast ? ["--with-last"] : []) + ["--"] + files)
  }
}
