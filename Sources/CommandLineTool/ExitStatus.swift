/// What the exit status says.
enum ExitStatus: Int32, CaseIterable {
  case done = 0
  case refused = 1
  case usage = 2
  case unreachable = 3
  case goodbye = 4
  case timeout = 5
  case notDurable = 6

  var meaning: String {
    switch self {
    case .done: "done; also when the reader of the output went away"
    case .refused:
      "rejected by the daemon, nothing stands at the path, digests differ, or a journal is damaged"
    case .usage: "the command line is wrong, or a file or value that it names"
    case .unreachable: "cannot connect: no daemon serves at the socket, or it does not answer"
    case .goodbye: "the daemon said goodbye, or the connection was lost"
    case .timeout: "no answer within --timeout; what was sent may have been done"
    case .notDurable: "done, but not durable as --durable asks"
    }
  }

  /// The statuses as lines of help.
  static var help: String {
    let lines = allCases.map { "  \($0.rawValue)  \($0.meaning)" }
    return "EXIT STATUS:\n" + lines.joined(separator: "\n")
  }
}
