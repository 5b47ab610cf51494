import ArgumentParser
import EventLoop
import Glibc
import Values

struct Top: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "A live screen of a daemon: clients, actions, effects, durability, memory.",
    discussion: """
      On a terminal: a screen that is drawn anew each interval, until 'q'. '?' shows the keys: sort \
      ('s', '<', '>', 'r'), filter ('/'), choose the list that has the room (Tab), scroll, freeze \
      (space). Rates are of the time between two looks: a client that is new has none yet. The \
      connection of this command is in the list, as '(this)'.

      The actions by name are those of the daemon's log: since the first look, and as many as the \
      log had then. A look reads up to 1,000 of them; where there were more, the names are a sample, \
      and the screen says of how many. All other figures are exact. What the daemon's policy does \
      not let you see is not shown. The resident memory and the processor's time are the system's, \
      and are there only if the daemon's process is to be found here.

      Columns, each a name for --sort:
        label     of a client
        pid       of its process
        uid       of its user
        actions   that it sends a second
        bytes     that it is sent a second
        lag       revisions that it has not been sent yet
        unsent    bytes that wait in its socket
        stalled   and for how long
        paths     that it mirrors
        name      of an action
        rate      how often it was done a second
        share     of all of those, in percent
        count     how often it was seen
        rejected  how often it was rejected
        effect    the name of one that runs
        key       by which its feature cancels it
        age       how long it runs
        sent      actions that it has sent
        by        the action that began it

      Without a terminal: the whole as plain text, once each interval, with an empty line between. \
      With --json one object a line for each look, in which null stands for what is not known, or \
      not to be seen:
        actions        by name: action, count, perSecond, rejected
        clients        as 'lockstep clients' has them, with actionsPerSecond, bytesPerSecond and \
      own, whether it is this command
        effects        as 'lockstep effects' has them
        memory         residentBytes of the process; stateBytes encoded, stateMemoryBytes in \
      memory, and historyBytes
        newActions     that were done since the look before
        unseenActions  those of them whose names are not among the actions
        perSecond      how fast it grows: actions, rejected, revisions, snapshots, coalesced; \
      bytesSent to all other clients; processor, in seconds
        seconds        since the look before; null where rates begin
        status         as 'lockstep status' has it

      Ends with status 4 when the daemon says goodbye or the connection is lost; when the reader of \
      its output goes away; and by SIGINT, with the shell's 130.

      EXAMPLES:
        lockstep top
        lockstep top --sort lag --interval 5
        lockstep top --list actions --filter todos
        lockstep top --json --count 2 | jq .perSecond
      """)

  @Option(
    help: ArgumentHelp(
      "The time between two looks: 1 by default, at least 0.1.", valueName: "seconds"),
    transform: Seconds.read)
  var interval: Seconds?

  @Option(
    help: ArgumentHelp("End after so many looks.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var count: Int?

  @Option(
    help: ArgumentHelp(
      "Sort the list that has this column by it; by default by actions, rate and age.",
      valueName: "column"))
  var sort: TopColumn?

  @Option(help: "The list that has the room: clients, actions or effects.")
  var list: TopList?

  @Option(
    help: ArgumentHelp(
      "Only what has this text in its label, process identifier or name.", valueName: "text"),
    transform: ArgumentOrder.unmarked)
  var filter = ""

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if let interval, interval.duration < .milliseconds(100) {
      throw ValidationError("--interval is at least 0.1 seconds.")
    }
  }

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let output = Output(options)
      let isLive = output.isPretty && Terminal.isScreen(STDOUT_FILENO)
      let looks = TopLooks(
        client: client, interval: interval?.duration ?? .seconds(1), count: count, hurries: isLive)
      let label = options.label ?? Client.label(of: Self.self)
      let model = TopModel(label: label, pid: UInt64(getpid()))
      let view = TopView(sort: sort, list: list, filter: filter)
      if isLive {
        var session = TopSession(looks, model, view, hasColor: output.hasColor)
        return try await session.run()
      }
      StandardOutput.endWithReader()
      try await write(looks, model, view, output)
    }
  }

  /// Write each look, as text or as JSON.
  private func write(
    _ looks: TopLooks, _ model: TopModel, _ view: TopView, _ output: Output
  ) async throws {
    var model = model
    var isFirst = true
    try await looks.run { look in
      model.add(look)
      if options.json { return try output.line(model.value(view)) }
      let size = TopScreen.Size(columns: output.width, rows: .max)
      let text = TopScreen(model: model, view: view, size: size).wholeText
      try output.lines(((isFirst ? [] : [""]) + text).joined(separator: "\n"))
      isFirst = false
    }
  }
}
