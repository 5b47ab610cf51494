import ArgumentParser
import CBOR
import EventLoop
import LockstepClient
import Values
import Wire

// The commands that look at the past.

struct Diff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "What differs between two revisions.",
    discussion: """
      A line for each place: on a terminal a sign, the path, what was and what is; else an object:
        path  of the place; those of an array are given in order: what is removed or put in moves \
      what stands behind it
        from  what stood there at the first revision, if something did
        to    what stood there at the second, if something did

      How far back it goes: see 'lockstep history --help'.

      EXAMPLES:
        lockstep diff 40 42
        lockstep diff 40 now /lamps

      \(Transcript.lamps)
        $ lockstep diff 1 now
        ~ /lamps/hall  false → true
        - /lamps/porch  false
        $ lockstep get /lamps --at 1
        {"hall": false, "porch": false}
      """)

  @Argument(help: "A revision.", transform: NumberArgument.atLeast(0))
  var from: UInt64

  @Argument(help: "Another revision, or 'now'.", transform: Revision.init(_:))
  var to = Revision.now

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  enum Revision: Equatable {
    case now
    case number(UInt64)

    init(_ argument: String) throws {
      if argument == "now" {
        self = .now
      } else {
        self = .number(try NumberArgument.atLeast(0)(argument))
      }
    }
  }

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let path = try client.resolve(path)
      let old = try await client.value(at: path, revision: from)
      let new: Value?
      switch to {
      case .now: new = try await client.mirror(of: path.scope).state?.value(at: path.rest)
      case .number(let revision): new = try await client.value(at: path, revision: revision)
      }
      let output = Output(options)
      for change in try PlaceChange.all(from: old, to: new, at: path.path, along: []) {
        if output.isPretty {
          try output.lines(change.line(output))
        } else {
          try output.line(change.form)
        }
      }
    }
  }
}

struct ShowHistory: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Who changed what stands at a path, when, from what to what.",
    discussion: """
      For each revision that changed it, the oldest first, what 'lockstep watch --format diff --why' \
      shows: what was and what is, and the action, if the daemon's log still has it; else null. \
      Without a terminal: one object a line:
        revision  that the change made
        changes   the places that changed, see 'lockstep diff'
        action    what made it, as 'lockstep log' shows it

      The daemon remembers as many bytes of changes as 'lockstepd --limit historyBytes=…' says; of a \
      state that takes more than half of that it has no past. When its process begins, it knows what \
      its journal still has, or what the process before handed over. What is older can be in a \
      journal: see 'lockstep journal'. The past is for those who may administer the daemon.

      EXAMPLES:
        lockstep history /lamps/hall
        lockstep history /lamps --limit 5

        $ lockstep set /lamps '{"hall": true}'
        revision 1
        $ lockstep increment /lamps/switched
        revision 2
        $ lockstep history /lamps/switched
        revision 2  11-26 10:49:17Z  #2 increment, client 2 (pid 9, uid 0) "lockstep in…
        + /lamps/switched  1
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @Option(
    help: ArgumentHelp("How many of the latest changes: 100 by default.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var limit: Int = 100

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let output = Output(options)
      for (change, maker) in try await client.history(of: client.resolve(path), limit: limit) {
        try output.show(change, by: .some(maker))
      }
    }
  }
}
