import ArgumentParser
import EventLoop
import LockstepClient
import SocketPaths
import Values
import Wire

struct Log: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "The latest actions: where they came from, and what became of them.",
    discussion: """
      A line for each action: its number, when, what became of it, the revision, who sent it, the \
      action; below it the first places that it changed, where the daemon remembers that: more \
      of them with --changes. With --tree, what an action led to is indented under it. With --follow \
      the log goes on until the connection ends, with status 4, or by SIGINT. Of former processes of \
      the daemon it has what the journal still had, if there is one: what changed something or was a \
      client's, and not what led to it. Without a terminal: one object a line:
        sequence  the number of the action
        parent    that of the action that led to it, if one did
        origin    who sent it
        pid       of the client that began it all, if one did
        uid       of its user
        label     what it calls itself
        action    its name
        payload   what it carries, if that was kept
        outcome   changed, unchanged, swallowed, accepted, or rejected and why
        revision  of the state behind it
        time      when it was done
        changes   with --changes or --path, of what changed the state: the places that differ, see \
      'lockstep diff'; null where the daemon does not remember, see 'lockstep history'

      EXAMPLES:
        lockstep log --tree --limit 20
        lockstep log --follow
        lockstep log --user www-data --outcome rejected --since 3600
        lockstep log --path /lamps --follow

      \(Transcript.lamps)
        $ lockstep log --limit 2
        2  2026-11-26T14:46:07.571Z  changed  2  client 2 (pid 1399, uid 1000)  set {"set": {"path": "/lamps/hall", "value": true}}
            ~ /lamps/hall  false → true
        3  2026-11-26T14:46:07.590Z  changed  3  client 3 (pid 1400, uid 1000)  remove {"remove": {"path": "/lamps/porch"}}
            - /lamps/porch  false
      """)

  @Option(
    help: ArgumentHelp(
      "How many of the latest of these actions: 100 by default.", valueName: "number"),
    transform: NumberArgument.atLeast(0))
  var limit: Int = 100

  @Flag(help: "Indent what an action led to under it.")
  var tree = false

  @Flag(help: "Go on with what comes.")
  var follow = false

  @Flag(
    inversion: .prefixedNo,
    help: "Show what each action changed. Without a terminal, only if it is asked for.")
  var changes: Bool?

  @OptionGroup(title: "Which Actions") var filter: LogFilter

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if changes == false, !filter.path.isEmpty {
      throw ValidationError("--path shows actions for what they changed: leave --no-changes away.")
    }
  }

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let output = Output(options)
      let isAsked = changes == true || !filter.path.isEmpty
      var writer = LogWriter(output: output, isTree: tree, mostChanges: isAsked ? 20 : 3)
      var changes = try LogChanges(
        client, at: filter.path, isShown: changes ?? output.isPretty,
        isOffer: !isAsked)
      // The daemon has no more than some thousands; which of them are wanted is decided here.
      let latest = filter.passesAll ? limit : Int(UInt32.max)
      let records = try LogRecord.records(of: await client.report(.log, ["\(latest)"]))
      var wanted = records.filter(filter.passes)
      if filter.path.isEmpty { wanted = wanted.suffix(limit) }
      try writer.show(await changes.add(to: wanted).suffix(limit))
      guard follow else { return }
      StandardOutput.endWithReader()
      // If the log was empty, follow it from its start; with a limit of 0, follow it from now.
      let since = records.last.map { ["\($0.sequence)"] } ?? (limit > 0 ? ["0"] : [])
      if !changes.areWanted {
        return try await client.reports(.followLog, since) { report in
          try writer.show(LogRecord.records(of: report).filter(filter.passes))
        }
      }
      for try await records in LogBatches(client, since, every: .milliseconds(250)) {
        try writer.show(await changes.add(to: records.filter(filter.passes)))
      }
    }
  }
}

struct Why: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "why",
    abstract: "What led to an action: its parent, the parent of that, and so on.",
    discussion: """
      The number is the one that 'lockstep log' shows. A line for each action, from the one that \
      is asked for to the one that began it all. Without a terminal: one object a line, as of \
      'lockstep log'.

      EXAMPLES:
        lockstep why 42
      """)

  @Argument(help: "The number of an action.", transform: NumberArgument.atLeast(0))
  var sequence: UInt64

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let records = try await records(client)
      let output = Output(options)
      if output.isPretty { return try output.lines(LogWriter.chain(records)) }
      for record in records { try output.line(record.value) }
    }
  }
}

extension Why {
  private func records(_ client: Client) async throws -> [LogRecord] {
    do {
      let records = try LogRecord.records(of: await client.report(.why, ["\(sequence)"]))
      if !records.isEmpty { return records }
    } catch let failure as Failure where failure.status == .absent {
      // The failure below says what the log has instead, and where older actions are.
    }
    throw Failure(.absent, try await absence(client))
  }

  /// A sentence on an action that the log does not have.
  private func absence(_ client: Client) async throws -> String {
    let records = try LogRecord.records(of: await client.report(.log, ["\(UInt32.max)"]))
    let numbers = records.map(\.sequence)
    let extent = numbers.min().flatMap { first in
      numbers.max().map { first == $0 ? "it has only \($0)" : "it has \(first) to \($0)" }
    }
    let status = try await client.report(.status)
    var text =
      "the log has no action \(sequence): \(extent ?? "it is empty")."
    if case .text(let directory)? = status.child("stateDirectory") {
      text += " What was kept before is in 'lockstep journal \(SocketPlace.word(directory))'."
    }
    return text
  }
}

/// An action in the daemon's log.
struct LogRecord: Sendable {
  private(set) var value: Value
  let sequence: UInt64
  let parent: UInt64?
  /// What it changed, as far as that is known and wanted.
  private(set) var changes: [PlaceChange] = []

  init?(_ value: Value) {
    guard let sequence = value.child("sequence")?.number else { return nil }
    self.value = value
    self.sequence = sequence
    parent = value.child("parent")?.number
  }

  static func records(of report: Value) throws(Failure) -> [LogRecord] {
    guard case .array(let records)? = report.child("records") else {
      throw Failure(.goodbye, "the daemon's log is none.")
    }
    return records.compactMap { LogRecord($0) }
  }

  var action: String {
    let name = value.cell("action").escapingControls
    guard let payload = value.child("payload"), payload != .null else { return name }
    let text = PrettyWriter.text(payload, width: .max, hasColor: false)
    return "\(name) \(text.cut(to: 200))"
  }

  var revision: UInt64? { value.child("revision")?.number }

  /// The record with what it changed; nil if that is not remembered.
  func with(_ changes: [PlaceChange]?) -> LogRecord {
    guard case .object(var members) = value else { return self }
    let form = changes.map { Value.array(TreeArray($0.map(\.form))) } ?? .null
    members.updateValue(form, forKey: "changes")
    var record = self
    record.value = .object(members)
    record.changes = changes ?? []
    return record
  }

  var origin: String { value.cell("origin").escapingControls }

  /// The outcome of the action in one word, and the reason if it was rejected.
  var outcome: (word: String, reason: String?) {
    let parts = value.cell("outcome").split(separator: ":", maxSplits: 1).map(String.init)
    let reason = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : nil
    return (parts.first ?? "-", reason)
  }
}

/// Writes actions, a line each.
struct LogWriter {
  private let output: Output
  private let isTree: Bool
  /// How many of the places that an action changed are shown.
  private let mostChanges: Int
  /// The depth in the tree of each action that was written.
  private var depths: [UInt64: Int] = [:]

  init(output: Output, isTree: Bool, mostChanges: Int = 20) {
    self.mostChanges = mostChanges
    self.output = output
    self.isTree = isTree
  }

  mutating func show(_ records: [LogRecord]) throws(Failure) {
    let arranged = arrange(records)
    guard output.isPretty else {
      for record in arranged { try output.line(record.value) }
      return
    }
    if arranged.isEmpty { return }
    try output.lines(lines(arranged).joined(separator: "\n"))
  }

  /// The records in order; in a tree, each after its parent.
  mutating func arrange(_ records: [LogRecord]) -> [LogRecord] {
    guard isTree else { return records }
    let here = Set(records.map(\.sequence))
    var children: [UInt64: [LogRecord]] = [:]
    var waiting: [LogRecord] = []
    for record in records {
      if let parent = record.parent, here.contains(parent), parent < record.sequence {
        children[parent, default: []].append(record)
      } else {
        waiting.append(record)
      }
    }
    waiting.reverse()
    var result: [LogRecord] = []
    while let record = waiting.popLast() {
      depths[record.sequence] = record.parent.flatMap { depths[$0] }.map { $0 + 1 } ?? 0
      result.append(record)
      waiting += (children[record.sequence] ?? []).reversed()
    }
    return result
  }

  /// The records as lines with aligned columns.
  func lines(_ records: [LogRecord]) -> [String] {
    let rows = records.map { record in
      [record.value.cell("sequence"), record.value.cell("time"), record.outcome.word]
        .map(\.escapingControls) + [record.value.cell("revision"), record.origin.cut(to: 40)]
    }
    let widths = (0..<5).map { column in rows.reduce(0) { max($0, $1[column].columns) } }
    return zip(records, rows).map { record, row in
      let cells = zip(row, widths).map { cell, width in
        cell + String(repeating: " ", count: width - cell.columns)
      }
      let indent = String(repeating: "  ", count: min(20, depths[record.sequence] ?? 0))
      let reason = record.outcome.reason.map { output.faint(": \($0.escapingControls)") } ?? ""
      let head =
        output.faint(cells.joined(separator: "  ")) + "  " + indent + record.action + reason
      return ([head] + changes(of: record)).joined(separator: "\n")
    }
  }

  /// The changes of an action, a line each.
  private func changes(of record: LogRecord) -> [String] {
    let shown = record.changes.prefix(mostChanges).map { "    \($0.line(output, indent: 4))" }
    let rest = record.changes.count - shown.count
    return shown + (rest > 0 ? [output.faint("    … and \(rest) more")] : [])
  }

  /// An action and what led to it, a line each.
  static func chain(_ records: [LogRecord]) -> String {
    records.enumerated().map { level, record in
      let arrow = level == 0 ? "" : String(repeating: "   ", count: level - 1) + "<- "
      return "\(arrow)\(record.action)  #\(record.sequence), \(record.origin)"
    }.joined(separator: "\n")
  }
}

extension Value {
  /// The value as a count; nil if it is none.
  var number: UInt64? {
    switch self {
    case .integer(let number): UInt64(exactly: number)
    case .unsigned(let number): number
    default: nil
    }
  }
}
