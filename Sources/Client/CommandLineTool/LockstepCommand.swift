import ArgumentParser
import EventLoop
import SocketPaths

/// The command line of Lockstep.
struct LockstepCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lockstep",
    abstract: "Look at the state of a Lockstep daemon, change it, and follow it live.",
    usage: "lockstep [<global options>] <command> [<argument> ...]",
    discussion: """
      A PATH is a JSON Pointer (RFC 6901): each step is '/' and a key. '' is the whole document, \
      '/a/b' the member b of the member a, '/list/0' the first element of an array. '/' alone is \
      the member whose name is empty, not the whole. In a key '~' is written ~0 and '/' ~1.

      A daemon whose state has types of its own is shown by the names that its schema gives to \
      fields and cases, and changed with 'lockstep send'; the other commands that change \
      something work on documents. See 'lockstep schema'.

      On a terminal, values are laid out for reading. Otherwise, and with --json, each is one \
      line of JSON; 'lockstep metrics' and 'lockstep top' write text without --json, too. What \
      JSON has no form for is an object with one member: {"$bytes": base64} and \
      {"$double": "NaN"}.

      The options --socket, --timeout, --label, --json and --no-color go with every command, \
      before or behind its name.

      EXAMPLES:
        lockstep set /lamps '{"hall": false}'
        lockstep watch /lamps/hall
        lockstep increment /visits
        lockstep send toggle 1
        lockstep watch /job --until '/job/state="done"' --timeout 60

      \(CommandNames.help)

      ENVIRONMENT:
        LOCKSTEP_SOCKET  the daemon's socket
        XDG_RUNTIME_DIR  where the socket is, as lockstep.sock, if that names none; see below
        COLUMNS          the width of tables and values; else the terminal's
        NO_COLOR         if set, no colours

      \(ExitStatus.help(of: .commandLine))

      THE SOCKET:
      \(StandardPlaces.help)

      DIAGNOSTICS:
      What goes wrong is said on standard error, in a sentence, or with --json as an object on a \
      line of its own:
        {"error":{"code":"testFailed","message":"…","path":"/i","status":"differs"}}
      'status' is the name of the exit status. 'code' is the protocol's name of the reason, of a \
      rejection or a goodbye, where the daemon gave one, else the same as 'status'. 'path' is \
      there if the error is about one place, 'limit' with its 'name', 'allowed' and 'observed' \
      if the daemon has said goodbye because of one, and 'retryAfterMs' where the daemon asks to come back later. What is \
      said while a command goes on is {"notice":{"message":"…"}}.
      """,
    version: "0.1.0",
    subcommands: [Documentation.self],
    groupedSubcommands: [
      .init(
        name: "Reading",
        subcommands: [
          Get.self, List.self, Keys.self, Watch.self, Diff.self, ShowHistory.self, Export.self,
        ]),
      .init(
        name: "Changing",
        subcommands: [
          SetValue.self, Merge.self, Remove.self, Increment.self, Append.self, Insert.self,
          Move.self, Copy.self, Test.self, Patch.self, Send.self, Load.self, Jump.self, Undo.self,
          Redo.self,
        ]),
      .init(
        name: "Daemon",
        subcommands: [
          Top.self, Status.self, Clients.self, Effects.self, Log.self, Why.self, ShowSchema.self,
          ShowDigest.self, ShowLimits.self, Metrics.self, Inspect.self, Ping.self, PauseDaemon.self,
          Resume.self,
          Bench.self,
        ]),
      .init(
        name: "Journals", subcommands: [ShowJournal.self, CheckJournal.self, ReplayRecording.self]),
    ])

  static var _errorPrefix: String { "lockstep: " }

  /// The names of all commands.
  static var commandNames: [String] {
    let groups = configuration.groupedSubcommands.flatMap(\.subcommands)
    let commands = configuration.ungroupedSubcommands + groups
    return commands.compactMap { $0.configuration.commandName } + ["help"]
  }
}
