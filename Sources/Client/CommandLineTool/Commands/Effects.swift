import ArgumentParser
import EventLoop
import Values
import Wire

struct Effects: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "effects",
    abstract: "The work that actions have begun and that goes on, or the end of some of it.",
    discussion: """
      'lockstep effects cancel WHAT' cancels the effect with that identifier, or all with that \
      key; status 8 if there is none. Without a terminal: one object a line for each effect:
        id         names it for certain
        name       what its feature calls it
        key        by which its feature cancels it, if it has one
        action     what it was begun for
        sequence   the number of that action (SEQ), see 'lockstep why'
        client     the one that began it all, if one did
        owned      whether it ends with that client
        startedMs  how long ago it began (MS)
        sent       actions that it has sent
        place      in the source of the feature

      EXAMPLES:
        lockstep effects
        lockstep effects cancel fact
      """)

  enum Verb: String, ExpressibleByArgument, CaseIterable { case cancel }

  @Argument(help: "'cancel' ends effects; without it they are shown.")
  var verb: Verb?

  @Argument(
    help: "The identifier or key of what to cancel.", completion: Completion.effect,
    transform: ArgumentOrder.unmarked)
  var what: String?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if verb == .cancel && what == nil {
      throw ValidationError("which effect? Name its identifier or key, see 'lockstep effects'.")
    }
  }

  func run() async throws {
    try await Client.with(options, for: self) { client in
      if verb == .cancel, let what { return try await cancel(what, client) }
      guard case .array(let effects) = try await client.report(.effects) else {
        throw Failure(.goodbye, "the daemon's list of effects is none.")
      }
      try show(Array(effects))
    }
  }

  private func show(_ effects: [Value]) throws(Failure) {
    let output = Output(options)
    guard output.isPretty else {
      for effect in effects { try output.line(effect) }
      return
    }
    if effects.isEmpty { return try output.lines(output.faint("no effect is running")) }
    var table = Table([
      .init(heading: "ID"), .init(heading: "NAME", mayBeCut: true),
      .init(heading: "KEY", mayBeCut: true),
      .init(heading: "SEQ", isNumber: true), .init(heading: "MS", isNumber: true),
      .init(heading: "SENT", isNumber: true), .init(heading: "CLIENT", mayBeCut: true),
      .init(heading: "ACTION", mayBeCut: true),
    ])
    let members = ["id", "name", "key", "sequence", "startedMs", "sent", "client", "action"]
    for effect in effects { table.add(members.map { effect.cell($0) }) }
    try output.lines(table.text(width: output.width, heading: output.faint))
  }

  private func cancel(_ what: String, _ client: Client) async throws {
    let report = try await client.report(.cancelEffects, [what])
    let count = report.child("cancelled") ?? 0
    if count == 0 {
      throw Failure(
        .absent,
        "no effect has the identifier or key '\(what.shortened)'. See 'lockstep effects'.")
    }
    let output = Output(options)
    if output.isPretty { return try output.lines(output.faint("cancelled \(count.cell)")) }
    try output.line(["cancelled": count])
  }
}
