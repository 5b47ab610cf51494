public import ArgumentParser
public import DaemonCore
import Documents
import EventLoop
public import Glibc
public import Logging
import SocketPaths
import Systemd

/// The options that every daemon has.
public struct DaemonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The path of the socket.",
      discussion: """
        Default: $LOCKSTEP_SOCKET, else lockstep.sock in $XDG_RUNTIME_DIR, else see below.
        """, valueName: "path"), completion: .file())
  public var socket: String?

  @Option(
    help: ArgumentHelp(
      "The permissions of the socket's file, in octal.",
      discussion: "Default: 0600, or with --policy 0666, for then that says who may connect.",
      valueName: "mode"), transform: FileMode.read)
  public var mode: FileMode?

  @Option(
    help: ArgumentHelp(
      "Who may connect, see and do what: a file in YAML.",
      discussion: """
        lockstepd.service(8) has its format. SIGHUP has it read again, and so does --reload, which \
        says what came of it; with a mistake in it, the former policy stays. Without this option, \
        the daemon's own user and root may do everything, and others nothing.
        """, valueName: "file"), completion: .file())
  public var policy: String?

  @Option(
    help: ArgumentHelp(
      "Say whether a file could be the daemon's policy, and end.",
      discussion: "Status 0 if it could; else 1, and standard error says what is wrong.",
      valueName: "file"))
  public var checkPolicy: String?

  @Flag(
    help: ArgumentHelp(
      "Have the daemon that serves on the socket read its policy again, and end.",
      discussion: """
        Status 0 if the policy is in force; else 1, and standard error says what is wrong. For those \
        who administer the daemon, and for its own user.
        """))
  public var reload = false

  @Option(help: "The least level that is logged: trace to critical.")
  public var logLevel: Logger.Level = .info

  @Option(
    help: ArgumentHelp(
      "How log lines look: text, json, or journal (for systemd).",
      discussion: """
        Default: journal where standard error leads to it, with fields LOCKSTEP_CONNECTION, \
        LOCKSTEP_UID and so on; else text.
        """))
  public var logForm: LogForm?

  @Option(
    name: .customLong("limit"),
    help: ArgumentHelp(
      "Change a limit; may be repeated.",
      discussion: "Names and defaults: `lockstep limits`. Durations are in milliseconds.",
      valueName: "name=value"), transform: LimitChange.init(argument:))
  public var changedLimits: [LimitChange] = []

  @Option(
    name: .customLong("feature"),
    help: ArgumentHelp(
      "Serve only this part of the feature; may be repeated.",
      discussion: "Actions of other parts are rejected. A part is the first word of an action.",
      valueName: "name"))
  public var features: [String] = []

  @Option(
    help: ArgumentHelp(
      "Serve the state of a JSON file, and record actions instead of doing them.",
      discussion: "To test clients alone: `lockstep log` shows what they sent. Nothing is kept.",
      valueName: "file"), completion: .file())
  public var stub: String?

  @Option(
    help: ArgumentHelp(
      "Reject what a user sends beyond so many actions a second.", valueName: "actions"),
    transform: NumberOption.read(in: 1...Int.max))
  public var rateLimit: Int?

  @Option(
    help: ArgumentHelp(
      "On a fatal signal, write the last so many actions to standard error.", valueName: "count"),
    transform: NumberOption.read(in: 1...10_000))
  public var crashReport: Int?

  @Option(
    help: ArgumentHelp(
      "Where the state is kept.",
      discussion: """
        Default: the first of $STATE_DIRECTORY, which systemd sets, else lockstep in \
        $XDG_STATE_HOME. Neither set, and none given here: nothing is kept.
        """, valueName: "directory"), completion: .directory)
  public var stateDir: String?

  @Option(
    help: ArgumentHelp(
      "What is kept: sync, async or none.",
      discussion: """
        sync: what is acknowledged as durable survives a crash of the machine. async: changes are \
        kept soon, and survive a crash of the daemon. Default: sync where there is a state \
        directory, else none.
        """, valueName: "durability"))
  public var durability: Durability?

  @Flag(
    help: ArgumentHelp(
      "On SIGTERM, leave all connections to the next process of the service.",
      discussion: """
        systemd keeps them while it restarts the service (FileDescriptorStoreMax=): clients stay \
        connected and notice nothing.
        """))
  public var handOver = false

  @Option(
    help: ArgumentHelp(
      "Give up what was kept after a revision, and go on from there.",
      discussion: "A copy of the journal is kept beside it.", valueName: "revision"),
    transform: NumberOption.read(in: 0...UInt64.max))
  public var recoverTo: UInt64?

  @Flag(help: "Log every action, with its cause and what it came to.")
  public var logActions = false

  @Flag(
    inversion: .prefixedNo,
    help: "Whether to count actions by name and outcome, for `lockstep metrics`; by default not.")
  public var metrics = false

  @Option(
    help: ArgumentHelp(
      "Record all events of the daemon in a file.",
      discussion: """
        For a report of a fault: a recording can be replayed. It contains the state, and grows with \
        everything that clients send. An existing file is kept with the suffix .old.
        """, valueName: "file"), completion: .file())
  public var record: String?

  public init() {}

  public mutating func validate() throws {
    if record != nil, stub != nil || rateLimit != nil || !features.isEmpty {
      throw ValidationError(
        "--record works with the feature alone: leave out --stub, --rate-limit and --feature.")
    }
    if stub != nil, stateDir != nil || durability.map({ $0 != .none }) ?? false {
      throw ValidationError(
        "--stub serves a file and keeps nothing: leave out --state-dir and --durability.")
    }
    if stateDir?.isEmpty == true {
      throw ValidationError("--state-dir names no directory: its value is empty.")
    }
    if recoverTo != nil, stub != nil || durability == Durability.none {
      throw ValidationError(
        "--recover-to needs a state that is kept: leave out --durability and --stub.")
    }
  }

  /// Where and how the state is persisted; nil if it is not, like that of `--stub`.
  public var persistence: PersistenceOptions? {
    get throws {
      if durability == Durability.none || stub != nil { return nil }
      guard let directory = stateDir ?? StateDirectory.standard() else {
        if durability == nil && recoverTo == nil { return nil }
        throw DaemonError(
          "there is no directory to keep the state in: give one with --state-dir")
      }
      return PersistenceOptions(
        directory: directory, durability: durability ?? .sync, recoverTo: recoverTo)
    }
  }

  /// The path on which to listen, or the standard one.
  public var socketPath: String { socket ?? StandardPlaces().forDaemon }

  /// The permissions of the socket's file.
  var socketMode: mode_t { mode?.bits ?? (policy == nil ? 0o600 : 0o666) }

  /// The limits that fit the process's memory, with the changes from the command line.
  public var limits: Limits {
    var limits = Limits()
    limits.fit(Memory.readings())
    for change in changedLimits { change.apply(to: &limits) }
    return limits
  }
}

/// Permissions, written in octal.
public struct FileMode: ExpressibleByArgument, Sendable {
  public var bits: mode_t

  public init(bits: mode_t) { self.bits = bits }

  public init?(argument: String) {
    guard let bits = mode_t(argument, radix: 8), bits <= 0o777 else { return nil }
    self.bits = bits
  }

  public var defaultValueDescription: String { "0" + String(bits, radix: 8) }

  static func read(_ argument: String) throws -> FileMode {
    guard let mode = FileMode(argument: argument) else {
      throw ValidationError("permissions are up to three octal digits, as in 660.")
    }
    return mode
  }
}

/// Parses numeric options, with the reason that an argument is not valid.
enum NumberOption {
  /// A parser of integers within a range.
  static func read<Number: FixedWidthInteger & Sendable>(
    in range: ClosedRange<Number>
  ) -> @Sendable (String) throws -> Number {
    { argument in
      guard let number = Number(argument), range.contains(number) else {
        let isOpen = range.upperBound == .max
        throw ValidationError(
          "it is a whole number, at least \(range.lowerBound)"
            + (isOpen ? "." : " and at most \(range.upperBound)."))
      }
      return number
    }
  }
}

/// A limit and the value that it gets.
public struct LimitChange: Sendable {
  let name: String
  let value: UInt64

  /// Reads `name=value`.
  public init(argument: String) throws {
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    guard let least = Limits.least(of: name) else { throw Self.absence(of: name) }
    guard parts.count == 2, let value = UInt64(parts[1]) else {
      throw ValidationError("write \(name)=NUMBER, and a whole number.")
    }
    guard value >= least else {
      throw ValidationError("\(name) is at least \(least), not \(value).")
    }
    self.name = name
    self.value = value
  }

  /// The error for an unknown name: suggests the one that was probably meant, else lists all.
  private static func absence(of name: String) -> ValidationError {
    let names = Limits().table.map(\.name).sorted()
    let same = names.first { $0.lowercased() == name.lowercased() }
    let hint = same.map { " Did you mean \"\($0)\"?" } ?? name.hint(among: names)
    let list = hint.isEmpty ? " The names are: \(names.joined(separator: ", "))." : hint
    return ValidationError("there is no limit \"\(name)\".\(list)")
  }

  func apply(to limits: inout Limits) { limits.set(name, to: value) }
}

extension LogForm: ExpressibleByArgument {}
extension Durability: ExpressibleByArgument {}
extension Logger.Level: @retroactive ExpressibleByArgument {}
