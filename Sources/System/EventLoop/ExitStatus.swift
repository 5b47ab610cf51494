/// The exit statuses of `lockstep` and the daemons: one table, which the help and the manual pages
/// of both print.
///
/// Each status has one meaning, so that a script knows whether an action was done, was not, or may
/// have been.
package enum ExitStatus: Int32, CaseIterable, Sendable {
  /// Also when the reader of the output has gone.
  case done = 0
  /// From `lockstep`: the daemon rejected the action or the query. From a daemon: it cannot serve.
  case refused = 1
  /// The command line, a file or a value that it names cannot be used; nothing was sent.
  case usage = 2
  /// No connection was ever made.
  case unreachable = 3
  /// The connection ended before the command did.
  case goodbye = 4
  /// `--timeout` has expired.
  case timeout = 5
  /// Done, but not as durable as `--durable` asked.
  case notDurable = 6
  /// Standard output or a file could not be written. An action that was sent was done.
  case unwritten = 7
  /// Nothing has the path, number or name that was asked for.
  case absent = 8
  /// The permissions of the socket or the daemon's policy do not allow it.
  case denied = 9
  /// A value or a digest is not the one that it was compared with.
  case differs = 10
  /// A daemon's persisted data is damaged.
  case damaged = 11
  /// A daemon's persisted data is of another version of its feature.
  case otherVersion = 12

  /// The name that errors of `--json` carry.
  package var name: String { "\(self)" }

  /// The programs that the table covers.
  package enum Program: Sendable {
    case commandLine, daemon
  }

  /// The meaning of the status for a program; nil if the program never exits with it.
  package func meaning(of program: Program) -> String? {
    switch program {
    case .commandLine: meaning
    case .daemon: meaningOfDaemon
    }
  }

  private var meaning: String? {
    switch self {
    case .done: "done; also when the reader of the output has gone"
    case .refused: "refused: the daemon rejected the action or query; nothing was done"
    case .usage: "usage: a wrong command line, file or value; nothing was sent"
    case .unreachable: "unreachable: no daemon serves at the socket or answers; nothing was sent"
    case .goodbye: "goodbye: the connection has ended; what was sent may have been done"
    case .timeout: "timeout: not done within --timeout; what was sent may have been done"
    case .notDurable: "notDurable: done, but not durable as --durable asks"
    case .unwritten: "unwritten: the output could not be written; what was sent was done"
    case .absent: "absent: nothing has that path, number or name"
    case .denied: "denied: permissions or the daemon's policy forbid it; nothing was done"
    case .differs: "differs: the value or digest is another; nothing was done"
    case .damaged: "damaged: what a daemon has kept is damaged"
    case .otherVersion: nil
    }
  }

  private var meaningOfDaemon: String? {
    switch self {
    case .done: "stopped as asked"
    case .refused: "refused: it cannot serve; the last line of its log says why"
    case .usage: "usage: the command line is wrong"
    case .unwritten: "unwritten: the help could not be written to standard output"
    case .otherVersion:
      "otherVersion: what was kept is of another version of the feature"
    case .unreachable, .goodbye, .timeout, .notDurable, .absent, .denied, .differs, .damaged: nil
    }
  }

  /// The statuses of a program as a section of its help.
  package static func help(of program: Program) -> String {
    let lines = allCases.compactMap { status in
      status.meaning(of: program).map { "  \(status.rawValue)  \($0)" }
    }
    return "EXIT STATUS:\n" + lines.joined(separator: "\n")
  }
}
