import ArgumentParser
import Values

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

      With --export, a recording that may be given to others is written to a new file: the same events, \
      without the values at the paths of the policy's 'deny-read' rules, and at those that --leave-out \
      names; what a policy just does not grant to somebody is in it. Texts, keys and bytes there become \
      others of the same length, numbers others, equal ones equal, and booleans false: mostly the same \
      happens, and where not, it says from which event on. What is not a value stays: who acted when, \
      labels, names of actions, the policy, tokens of sessions, all keys elsewhere, and keys of up to four \
      digits, which may be indices.

      The program 'lockstep-replay' does it, which is to be beside this one or in the PATH.

      EXAMPLES:
        lockstep replay fault.recording
        lockstep replay --until 40 fault.recording
        lockstep replay fault.recording --export for-others.recording --leave-out '/users/*/name'
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

  @Option(
    help: ArgumentHelp(
      "Write a recording for others there, without the values at the policy's 'deny-read'.",
      valueName: "file"))
  var export: String?

  @Option(
    help: ArgumentHelp(
      "With --export: leave out the values at this path, too; a key * is any.", valueName: "path"))
  var leaveOut: [String] = []

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if options.json { throw ValidationError("a replay is told in words: leave --json away.") }
    if files.isEmpty { throw ValidationError("which recording? Name its file.") }
    if export == nil, !leaveOut.isEmpty {
      throw ValidationError("--leave-out is for --export: name the file to write.")
    }
    if let path = leaveOut.first(where: {
      $0 != "/" && ($0.isEmpty || Path(pointer: $0.replacing("~2", with: "*")) == nil)
    }) {
      throw ValidationError(
        "'\(path)' is no path: a path begins with '/', and in a key '/' is written ~1, '~' ~0.")
    }
    guard export != nil else { return }
    if files.count != 1 { throw ValidationError("--export writes one recording: name one.") }
    if until != nil || withLast {
      throw ValidationError(
        "--export writes a whole recording: leave --until and --with-last away.")
    }
  }

  func run() throws {
    let options =
      (until.map { ["--until", "\($0)"] } ?? []) + (export.map { ["--export", $0] } ?? [])
      + leaveOut.flatMap { ["--leave-out", $0] }
    try ProgramPath.become(
      "lockstep-replay", options + (withLast ? ["--with-last"] : []) + ["--"] + files)
  }
}
