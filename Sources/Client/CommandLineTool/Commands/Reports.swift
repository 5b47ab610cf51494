import ArgumentParser
import EventLoop
import Values
import Wire

// The commands that show the daemon's reports.

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "How the daemon is: position, digest, counters.",
    discussion: """
      Where it is in the history of its state:
        epoch     one history: a new number where a daemon has lost its own
        run       one life of a daemon within it
        revision  how often the state has changed
        digest    of the whole state, for those who may see all of it

      What it is, and what it does now:
        version            of the program
        pid                of its process
        socket             where it serves
        stateDirectory     where it keeps its state, if it does
        uptimeMs           how long it runs
        pausedMs           how long it is paused, see 'lockstep pause'; null if it is not
        clients            connections
        sessions           of clients, those included that may come back
        scopes             paths that are mirrored
        effects            that run
        heldStates         old states, held for clients that lag
        historyBytes       recent patches, kept for clients that come back
        pastSince          the oldest revision that can be looked at, see 'lockstep history'
        durability         none, async or sync
        durableRevision    the newest that survives a crash of the machine
        journal            healthy, none, or why nothing can be kept
        journalQueueBytes  that wait for the disk

      What you may do there:
        mayAdminister  ask about others and about actions, pause, cancel effects
        mayDoAll       everything, so also jump and undo

      What it has counted since its start:
        actions      that were done
        rejected     actions that were not
        connections  that were made
        snapshots    that were sent
        coalesced    revisions that clients got only as part of a wider patch
        goodbyes     that it said

      EXAMPLES:
        lockstep --json status | jq .revision
      """)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try Output(options).show(pairs: try await client.report(.status))
    }
  }
}

struct ShowLimits: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "limits",
    abstract: "The daemon's limits.",
    discussion: """
      Durations are in milliseconds. 'lockstepd --limit name=value' changes them. What each is for \
      is in wire.md, section "Limits", which is installed in share/doc/lockstep.
      """)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try Output(options).show(pairs: try await client.report(.limits))
    }
  }
}

struct Clients: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clients",
    abstract: "Who is connected, and how far behind.",
    discussion: """
      A table on a terminal; else one object a line for each client:
        connection    its number in the daemon's log
        pid           of its process
        uid           of its user
        label         what it calls itself
        position      epoch, run and revision of what it has been sent
        lagRevisions  what it has not been sent yet (LAG)
        lagBytes      what waits in its socket (BYTES)
        lagMs         and for how long (MS)
        joining       subscriptions whose snapshot it has not been sent
        subscriptions  how many it has
        scopes        the paths of the first 32 of them; '' is the whole
        coalesced     revisions that it got only as part of a wider patch
        snapshots     that it was sent
        patches       that it was sent
        actions       that it sent
        bytesSent     to it

      Of those that --closed shows there are also:
        time       when the connection ended
        lastedMs   how long it lasted (MS)
        cause      the name of the daemon's goodbye, or lost
        message    what the goodbye says
        limit      the limit that was passed, if one was
        allowed    by that limit
        observed   what was beyond it

      EXAMPLES:
        lockstep clients --closed
        lockstep --json clients | jq 'select(.lagMs > 1000)'
      """)

  @Flag(help: "Who was connected, and why that ended: the newest last.")
  var closed = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      if closed { return try await showClosed(client) }
      guard case .array(let clients) = try await client.report(.clients) else {
        throw Failure(.goodbye, "the daemon's list of clients is none.")
      }
      let output = Output(options)
      guard output.isPretty else {
        for client in clients { try output.line(client) }
        return
      }
      var table = Table([
        .init(heading: "PID", isNumber: true), .init(heading: "UID", isNumber: true),
        .init(heading: "LABEL", mayBeCut: true), .init(heading: "POSITION"),
        .init(heading: "LAG", isNumber: true), .init(heading: "BYTES", isNumber: true),
        .init(heading: "MS", isNumber: true), .init(heading: "COALESCED", isNumber: true),
        .init(heading: "SCOPES", mayBeCut: true),
      ])
      for client in clients {
        let members = ["pid", "uid", "label", "position", "lagRevisions", "lagBytes", "lagMs"]
        table.add(members.map { client.cell($0) } + [client.cell("coalesced"), client.scopes])
      }
      try output.lines(table.text(width: output.width, heading: output.faint))
    }
  }

  private func showClosed(_ client: Client) async throws {
    guard case .array(let ended) = try await client.report(.closedClients) else {
      throw Failure(.goodbye, "the daemon's list of clients that are gone is none.")
    }
    let output = Output(options)
    guard output.isPretty else {
      for connection in ended { try output.line(connection) }
      return
    }
    var table = Table([
      .init(heading: "TIME"), .init(heading: "PID", isNumber: true),
      .init(heading: "UID", isNumber: true), .init(heading: "LABEL", mayBeCut: true),
      .init(heading: "ACTIONS", isNumber: true), .init(heading: "MS", isNumber: true),
      .init(heading: "CAUSE"),
      .init(heading: "MESSAGE", mayBeCut: true),
    ])
    let members = ["pid", "uid", "label", "actions", "lastedMs", "cause", "message"]
    for connection in ended {
      table.add([connection.cell("time").dayAndSecond] + members.map { connection.cell($0) })
    }
    try output.lines(table.text(width: output.width, heading: output.faint))
  }
}

extension String {
  /// A time of ISO 8601 without its year and fractions, for a narrow column: `11-22 21:40:01Z`.
  var dayAndSecond: String {
    let parts = split(separator: "T", maxSplits: 1)
    guard parts.count == 2, hasSuffix("Z") else { return self }
    return "\(parts[0].suffix(5)) \(parts[1].prefix(8))Z"
  }
}

extension Value {
  /// A member as a cell of a table.
  func cell(_ name: String) -> String { child(.text(name))?.cell ?? "-" }

  /// The value as a cell of a table: a string without quotes.
  var cell: String {
    if case .text(let text) = self { return text }
    return PrettyWriter.text(self, width: .max, hasColor: false)
  }

  /// The paths that a client mirrors, in the row of one.
  var scopes: String {
    guard case .array(let scopes)? = child("scopes"), !scopes.isEmpty else { return "-" }
    let shown = scopes.map { $0 == "" ? "''" : $0.cell }.joined(separator: " ")
    guard case .integer(let all)? = child("subscriptions"), all > scopes.count else { return shown }
    return "\(shown) and \(all - Int64(scopes.count)) more"
  }
}

extension Output {
  /// Show an object, for a person with a line for each member.
  func show(pairs value: Value) throws(Failure) {
    guard isPretty, case .object(let members) = value else { return try show(value) }
    let sorted = members.sorted { String.precedes($0.key, $1.key) }
    let width = sorted.reduce(0) { max($0, $1.key.columns) }
    let text = sorted.map { name, value in
      let name = name.escapingControls
      let space = String(repeating: " ", count: max(0, width - name.columns))
      return faint(name) + space + "  " + value.cell.escapingControls
    }
    try lines(text.joined(separator: "\n"))
  }
}
