import ArgumentParser

/// The options that every command has.
struct GlobalOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The daemon's socket.",
      discussion: """
        Default: $LOCKSTEP_SOCKET, else lockstep.sock in $XDG_RUNTIME_DIR, else see \
        'lockstep --help'.
        """, valueName: "path"),
    completion: .file(), transform: ArgumentOrder.unmarked)
  var socket: String?

  @Option(
    help: ArgumentHelp(
      "Give up after this long, with status 5. Without it there is no limit.",
      valueName: "seconds"), transform: Seconds.read)
  var timeout: Seconds?

  @Option(
    help: ArgumentHelp(
      "What to be called in the daemon's list of clients.", valueName: "name"),
    transform: ArgumentOrder.unmarked)
  var label: String?

  @Flag(help: "Write one JSON value a line, on a terminal too, and errors as JSON objects.")
  var json = false

  @Flag(help: "No colours. The variable NO_COLOR has the same effect, and so has TERM=dumb.")
  var noColor = false

  /// The options as a usage line has them.
  static var usage: String {
    let usage = usageString()
    return String(usage[(usage.firstIndex(of: "[") ?? usage.startIndex)...])
  }
}

/// A positive length of time.
struct Seconds: Equatable {
  let duration: Duration

  init(_ duration: Duration) { self.duration = duration }
}
