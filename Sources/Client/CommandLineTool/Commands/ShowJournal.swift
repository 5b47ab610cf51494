import ArgumentParser
import EventLoop
import Journal
import Records

struct ShowJournal: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "journal",
    abstract: "The actions that a daemon has kept: the latest ones.",
    discussion: """
      One object a line for each action that changed the state or that a client may ask after, \
      oldest first. 'patch' is what it changed, as a JSON Patch; 'payload' the action, if it is \
      small enough to be kept; what cannot be read by the schema that the journal holds is \
      {"$bytes": base64} of its CBOR. The daemon may run. Actions that a snapshot covers are \
      removed some time later, but for those that the daemon's log holds.

      EXAMPLES:
        lockstep journal /var/lib/lockstep --last 10
      """)

  @Argument(
    help: "A journal, or the directory that it is in.", completion: .file(),
    transform: ArgumentOrder.unmarked)
  var path: String

  @Option(
    help: ArgumentHelp("Begin with this revision.", valueName: "revision"),
    transform: NumberArgument.atLeast(0))
  var from: UInt64 = 0

  @Option(
    help: ArgumentHelp("Only so many of the latest actions.", valueName: "number"),
    transform: NumberArgument.atLeast(0))
  var last: Int?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() throws {
    do {
      try show(JournalReader(reading: path))
    } catch let error as JournalError {
      throw Failure(error)
    }
  }

  private func show(_ reader: JournalReader) throws {
    let output = Output(options)
    // Rows can be read even if the rest is damaged; their meaning is then unknown.
    let form = RowForm((try? reader.contents())?.runs ?? [])
    var sequence = try last.map { try reader.sequence(before: $0) } ?? 0
    while true {
      // In slices, so that a slow reader of the output does not make the daemon's log grow.
      let entries = try reader.rows(after: sequence, limit: 1000)
      guard let newest = entries.last else { return }
      sequence = newest.row.sequence
      for entry in entries where entry.row.revision >= from {
        try output.line(form.value(of: entry))
      }
    }
  }
}

extension Failure {
  /// The failure of a journal that cannot be read.
  init(_ error: JournalError) {
    switch error.kind {
    case .corrupt: self.init(.damaged, error.description)
    case .locked, .unreachable, .newer, .full, .failed: self.init(.usage, error.description)
    case .foreign:
      // The error's advice is for a daemon, which writes there.
      self.init(.usage, "\(error.problem) Name a journal, or the directory that it is in.")
    }
  }
}
