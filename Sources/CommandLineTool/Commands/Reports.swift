import ArgumentParser
import Values

// The commands that show what the daemon says of itself.

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "How the daemon is: position, digest, counters.")

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try Output(options).show(pairs: try await client.report("status"))
    }
  }
}

struct ShowLimits: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "limits",
    abstract: "The daemon's limits.",
    discussion: "Durations are in milliseconds. 'lockstepd --limit name=value' changes them.")

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try Output(options).show(pairs: try await client.report("limits"))
    }
  }
}

struct Clients: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clients",
    abstract: "Who is connected, and how far behind.",
    discussion: """
      LAG is what a client has not been sent yet, in revisions; what waits in its socket, in \
      bytes; and for how long. COALESCED counts the revisions that it got only as part of a wider \
      patch. Without a terminal: one object a line for each client.
      """)

  @Flag(help: "Who was connected, and why that ended: the newest last.")
  var closed = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      if closed { return try await showClosed(client) }
      guard case .array(let clients) = try await client.report("clients") else {
        throw Failure(.goodbye, "the daemon's list of clients is none.")
      }
      let output = Output(options)
      guard output.isPretty else {
        for client in clients { try output.line(client) }
        return
      }
      var table = Table([
        .init(heading: "PID", isNumber: true), .init(heading: "UID", isNumber: true),
        .init(heading: "LABEL"), .init(heading: "POSITION"),
        .init(heading: "LAG", isNumber: true), .init(heading: "BYTES", isNumber: true),
        .init(heading: "MS", isNumber: true), .init(heading: "COALESCED", isNumber: true),
        .init(heading: "SCOPES"),
      ])
      for client in clients {
        let members = ["pid", "uid", "label", "position", "lagRevisions", "lagBytes", "lagMs"]
        table.add(members.map { client.cell($0) } + [client.cell("coalesced"), client.scopes])
      }
      try output.lines(table.text(width: output.width, heading: output.faint))
    }
  }

  private func showClosed(_ client: Client) async throws {
    guard case .array(let ended) = try await client.report("clients.closed") else {
      throw Failure(.goodbye, "the daemon's list of clients that are gone is none.")
    }
    let output = Output(options)
    guard output.isPretty else {
      for connection in ended { try output.line(connection) }
      return
    }
    var table = Table([
      .init(heading: "TIME"), .init(heading: "PID", isNumber: true),
      .init(heading: "UID", isNumber: true), .init(heading: "LABEL"),
      .init(heading: "ACTIONS", isNumber: true), .init(heading: "MS", isNumber: true),
      .init(heading: "CAUSE"), .init(heading: "MESSAGE"),
    ])
    let members = ["time", "pid", "uid", "label", "actions", "lastedMs", "cause", "message"]
    for connection in ended { table.add(members.map { connection.cell($0) }) }
    try output.lines(table.text(width: output.width, heading: output.faint))
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

  fileprivate var scopes: String {
    guard case .array(let scopes)? = child("scopes"), !scopes.isEmpty else { return "-" }
    return scopes.map { $0 == "" ? "''" : $0.cell }.joined(separator: " ")
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
