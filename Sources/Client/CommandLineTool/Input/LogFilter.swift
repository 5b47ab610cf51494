import ArgumentParser
import Glibc
import Lockstep
import Values

/// Which actions of the daemon's log are shown: those to which every given option applies.
struct LogFilter: ParsableArguments {
  enum Outcome: String, ExpressibleByArgument, CaseIterable {
    case changed, unchanged, swallowed, accepted, rejected
  }

  @Option(
    help: ArgumentHelp(
      "Only actions of this name, or of the child of this name: 'todos' is also 'todos.toggle'.",
      valueName: "name"), completion: Completion.action)
  var action: [String] = []

  @Option(
    help: ArgumentHelp(
      "Only what a client of this label or process identifier began.", valueName: "label|pid"))
  var client: [String] = []

  @Option(
    help: ArgumentHelp("Only what this user began.", valueName: "name|uid"),
    transform: LogFilter.uid(of:))
  var user: [UInt64] = []

  @Option(help: "Only with this outcome: changed, unchanged, swallowed, accepted, or rejected.")
  var outcome: [Outcome] = []

  @Option(
    help: ArgumentHelp(
      "Only from a time on: so many seconds ago, or as in 2026-11-25T17:30:00Z.",
      valueName: "seconds|time"),
    transform: LogFilter.time(from:))
  var since: String?

  @Option(
    help: ArgumentHelp("Only what changed what stands at this path.", valueName: "pointer"),
    completion: Completion.path, transform: PathArgument.init(_:))
  var path: [PathArgument] = []

  /// Whether no option is given.
  var passesAll: Bool {
    path.isEmpty && action.isEmpty && client.isEmpty && user.isEmpty && outcome.isEmpty
      && since == nil
  }

  /// Whether an action is shown, but for `path` (`LogChanges`).
  func passes(_ record: LogRecord) -> Bool {
    let value = record.value
    func isOne<T>(of wanted: [T], _ isIt: (T) -> Bool) -> Bool {
      wanted.isEmpty || wanted.contains(where: isIt)
    }
    let name = value.cell("action")
    return isOne(of: action) { String.isSame($0, name) || name.utf8.starts(with: "\($0).".utf8) }
      && isOne(of: client) { $0 == value.cell("label") || $0 == value.cell("pid") }
      && isOne(of: user) { value.child("uid") == Value($0) }
      && isOne(of: outcome) { $0.rawValue == record.outcome.word }
      && (since.map { !String.precedes(value.cell("time"), $0) } ?? true)
  }

  // MARK: Arguments

  private static func uid(of argument: String) throws -> UInt64 {
    if let number = UInt64(argument) { return number }
    guard let entry = getpwnam(argument) else {
      throw ValidationError("there is no user of this name.")
    }
    return UInt64(entry.pointee.pw_uid)
  }

  /// The time in the form of the log, whose order is that of its characters.
  private static func time(from argument: String) throws -> String {
    if let seconds = Double(argument), seconds >= 0, seconds < 1e9 {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      let present = Timestamp(nanoseconds: Int64(now.tv_sec) * 1_000_000_000)
      return (present + .seconds(-seconds)).description
    }
    // Of a day, or of a part of it.
    let form = #/\d{4}-\d\d-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?/#
    guard argument.wholeMatch(of: form) != nil else {
      throw ValidationError(
        "it is a number of seconds below 1000000000, or a time like 2026-11-25T17:30:00Z.")
    }
    return argument.last == "Z" ? String(argument.dropLast()) : argument
  }
}
