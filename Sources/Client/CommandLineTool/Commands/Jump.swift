import ArgumentParser
import EventLoop
import Values
import Wire

// The commands that go back to contents of the past.

struct Jump: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "jump",
    abstract: "Make the state what it was at a revision.",
    discussion: """
      A jump makes the next revision, with the contents of the former one, and every mirror follows. \
      It takes its place in the past like any other change. Actions that clients send meanwhile are \
      taken back as well; if they go on, and much is to change, the jump is refused: 'lockstep pause' \
      first. The daemon still knows which actions it has done, and does none of them a \
      second time; fields that are not kept in a journal (presence, for one) stay as they are; \
      effects of parts that are gone end. \
      'lockstep undo' undoes a jump, if that was not so large that the rest is forgotten.

      Without a terminal: one object:
        revision  that the daemon is at now
        of        whose contents it has

      How far back it goes: see 'lockstep history --help'. To jump is for those who may do everything.

      EXAMPLES:
        lockstep jump 41
        lockstep get /lamps --at 41

      \(Transcript.lamps)
        $ lockstep jump 1
        revision 4, with the contents of 1
        $ lockstep get /lamps
        {"hall": false, "porch": false}
      """)

  @Argument(help: "A revision.", transform: NumberArgument.atLeast(0))
  var revision: UInt64

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try await client.jump(.jump, "\(revision)", options)
    }
  }
}

struct Undo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Undo the last changes of the state, whoever made them.",
    discussion: """
      As in a text editor: undoing twice undoes two changes, 'lockstep redo' does them again, and \
      after any other change there is nothing to redo. It is a jump, see 'lockstep jump --help', but \
      refused if something changes the state meanwhile, because that would be undone as well.

      Without a terminal: one object:
        revision  that the daemon is at now
        of        the change whose contents it has

      EXAMPLES:
        lockstep undo
        lockstep undo 3

      \(Transcript.lamps)
        $ lockstep undo 2
        revision 4, with the contents of 1
        $ lockstep redo
        revision 5, with the contents of 2
        $ lockstep get /lamps
        {"hall": true, "porch": false}
      """)

  @Argument(
    help: "How many changes: 1 by default.",
    transform: NumberArgument.within(1...ReportName.mostSteps))
  var count: Int = 1

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try await client.jump(.undo, "\(count)", options)
    }
  }
}

struct Redo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "redo",
    abstract: "Do again what was undone.",
    discussion: """
      Until anything else changes the state: see 'lockstep undo --help'.

      Without a terminal: one object:
        revision  that the daemon is at now
        of        the change whose contents it has

      EXAMPLES:
        lockstep redo
      """)

  @Argument(
    help: "How many changes: 1 by default.",
    transform: NumberArgument.within(1...ReportName.mostSteps))
  var count: Int = 1

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      try await client.jump(.redo, "\(count)", options)
    }
  }
}

extension Client {
  /// Ask for a jump, and show where it led.
  fileprivate func jump(
    _ name: ReportName, _ argument: String, _ options: GlobalOptions
  ) async throws {
    let report = try await report(name, [argument])
    let output = Output(options)
    guard output.isPretty else { return try output.line(report) }
    let (revision, contents) = (report.cell("revision"), report.cell("of"))
    let isSame = revision == contents
    try output.lines(
      "revision \(revision)"
        + output.faint(isSame ? ", as before" : ", with the contents of \(contents)"))
  }
}
