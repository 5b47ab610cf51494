import ArgumentParser
import Documents
import EventLoop
import LockstepClient
import Values
import Wire

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Follow what stands at a path, live.",
    discussion: """
      Shows the current value at once (see --changes-only), then the value after each change \
      (see --latest); where the reader of the output is more than 8 MiB behind, only the newest of \
      what it has missed. Formats:
        state   the value as one line of JSON; an empty line when nothing stands there
        patch   one line for each revision: {"revision": 12, "patch": [...]}, a JSON Patch \
      (RFC 6902) with paths below the watched value. The first one puts the whole, and so does \
      any after a reconnection that could not be bridged; {"op": "remove", "path": ""} says that \
      nothing stands there any more. 'lockstep patch' understands the patches.
        diff    what was, and what is: {"revision": 12, "changes": [{"path": "/a", "from": 1, \
      "to": 2}]}, with paths from the document; without 'from' where there was nothing, without \
      'to' where there is nothing. Places of an array are given in order: what is removed or put \
      in moves what stands behind it
        pretty  the value laid out, below its revision; the default on a terminal, where of a \
      value of many lines only what has changed is shown

      Several paths, and '*' for every key of an object or array, are shown as diff. With --why \
      each revision says which action made it, who sent that, and when, as 'lockstep log' does; \
      that is for those who may administer the daemon. 'action' is null where the daemon's log has \
      passed on, and where no action made the change visible, but a new policy; of changes that \
      came in one piece, because this process was behind, it is the last.

      Ends with status 4 when the daemon says goodbye or the connection is lost, unless \
      --reconnect; when the reader of its output goes away; and by SIGINT, with the shell's 130.

      EXAMPLES:
        lockstep watch /lamps
        lockstep watch /job --until '/job/state="done"' --timeout 60
        lockstep watch '/lamps/*/power' /doors --why
        lockstep watch --format patch --reconnect >>changes.jsonl
      """)

  @Argument(
    help: "Where: JSON Pointers; '' is the whole, and the default; '*' is every key.",
    completion: Completion.path, transform: PathArgument.init(_:))
  var paths: [PathArgument] = []

  @Option(help: "What to write: state, patch, diff, or pretty.")
  var format: WatchFormat?

  @Option(
    help: ArgumentHelp("End when so many values have been written.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var count: Int?

  @Option(
    help: ArgumentHelp(
      "End when the value at a path is this one, after writing it; repeated: when all are.",
      discussion: """
        The path begins at the document, like every other, and lies within the watched one: \
        '/job/state="done"'. Numbers compare by their value.
        """, valueName: "pointer=json"),
    transform: UntilCondition.init(_:))
  var until: [UntilCondition] = []

  @Flag(help: "Only the newest value: leave out what came while the one before was written.")
  var latest = false

  @Flag(help: "Not the current value, only what changes from now on.")
  var changesOnly = false

  @Flag(help: "Name the action that made each change, and who sent it when.")
  var why = false

  @Flag(help: "Come back when the connection is lost, and wait for a daemon that is not there.")
  var reconnect = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    for until in until where !watched.contains(where: { $0.start.leads(to: until.path) }) {
      let paths = watched.map { "'\($0.path.path.pointer)'" }.joined(separator: ", ")
      throw ValidationError(
        "--until looks at '\(until.path.pointer)', which is not within the watched \(paths).")
    }
    if why, latest {
      throw ValidationError("--why tells of every change: leave out --latest.")
    }
    if why, reconnect {
      throw ValidationError(
        "--why ends with the daemon's process, whose log it reads: leave out --reconnect.")
    }
    if let format, format != .diff, let reason = reasonForDiff {
      throw ValidationError("--format \(format.rawValue) shows one value, and \(reason).")
    }
  }

  private var watched: [WatchedPath] {
    (paths.isEmpty ? [PathArgument(.root)] : paths).map(WatchedPath.init)
  }

  /// Why differences are shown, if no format is given or another one would not do.
  private var reasonForDiff: String? {
    if watched.count > 1 { return "there are several paths" }
    if watched[0].hasStar { return "'*' stands for many" }
    return why ? "--why tells of changes" : nil
  }

  func run() async throws {
    try await Client.with(options, for: self, reconnects: reconnect) { client in
      StandardOutput.endWithReader()
      if reconnect { Self.tellConnection(of: client) }
      for until in until { _ = try client.resolve(PathArgument(until.path)) }
      if format == .diff || reasonForDiff != nil { return try await showChanges(client) }
      try await showValues(of: client.resolve(watched[0].path), client)
    }
  }

  private func showValues(of path: PathArgument, _ client: Client) async throws {
    let mirror = try await client.mirror(of: path.scope, everyRevision: !latest)
    let output = Output(options)
    if output.isPretty, mirror.state?.value(at: path.rest) == nil {
      let absence = await client.absence(of: path, in: mirror.state)
      StandardError.note("waiting for '\(path.path.pointer)': \(absence)")
    }
    var writer = WatchWriter(
      output: output, format: format, path: path, conditions: until, limit: count,
      leavesOutFirst: changesOnly)
    if latest {
      for await _ in mirror.changes {
        let (state, position) = mirror.snapshot
        guard let position else { continue }
        if try writer.show(state, at: position.revision, patch: []) { return }
      }
    } else {
      for await change in mirror.revisions {
        if try writer.show(change.state, at: change.revision, patch: change.patch) { return }
      }
    }
    guard case .closed(let goodbye) = mirror.status else { return }
    throw Failure(goodbye)
  }

  /// Report on standard error when the connection is lost and when it is restored.
  private static func tellConnection(of client: Client) {
    Task.detached {
      var wasLost = false
      for await connection in client.connection.states {
        switch connection {
        case .stale where !wasLost:
          wasLost = true
          StandardError.note("the connection is lost; waiting for a daemon at \(client.socket).")
        case .live where wasLost:
          wasLost = false
          StandardError.note("connected again.")
        case .stale, .live, .connecting, .closed: break
        }
      }
    }
  }
}

// MARK: Changes

extension Watch {
  /// What comes from the daemon.
  private enum News: Sendable {
    case change(RevisionChange, of: Int)
    case records(Value)
    case end((any Error)?)

    /// The newest change of each mirror, the newest records, for which later changes may wait, and the
    /// end. Of what is left out no action is named.
    static func merged(_ news: [News]) -> [News] {
      let changes = news.compactMap { item -> (mirror: Int, change: RevisionChange)? in
        if case .change(let change, let mirror) = item { (mirror, change) } else { nil }
      }
      return Subscription.merged(changes).map { .change($0.change, of: $0.mirror) }
        + [news.last { if case .records = $0 { true } else { false } }].compactMap(\.self)
        + news.filter { if case .end = $0 { true } else { false } }
    }

    typealias RevisionChange = Subscription<Value>.RevisionChange
  }

  private func showChanges(_ client: Client) async throws {
    var places: [DiffWriter.Place] = []
    var mirrors: [Subscription<Value>] = []
    let (news, source) = MergingStream.make(
      bytes: Subscription<Value>.mostWaitingBytes, merge: News.merged)
    // From an action before the first value on, so that none behind it is missed.
    let newest = why ? try LogRecord.records(of: await client.report(.log, ["1"])).last : nil
    let follower = why ? Self.follow(client, after: newest?.sequence ?? 0, source) : nil
    defer { follower?.cancel() }
    for watched in watched {
      let scope = try client.resolve(PathArgument(watched.start)).scope
      places.append(
        DiffWriter.Place(scope: scope, steps: Array(watched.path.path.keys[scope.keys.count...])))
      mirrors.append(try await client.mirror(of: scope, everyRevision: !latest))
    }
    var writer = DiffWriter(
      output: Output(options), places: places, conditions: until, limit: count,
      namesActions: why, told: newest?.revision ?? 0, leavesOutFirst: changesOnly)
    if latest { return try await showLatest(mirrors, by: &writer) }
    let revisions = Subscription.revisions(of: mirrors)
    let reader = Task {
      for await (mirror, change) in revisions {
        source.append(.change(change, of: mirror), bytes: change.patch.count)
      }
      source.append(.end(nil), bytes: 0)
    }
    defer { reader.cancel() }
    for await item in news {
      switch item {
      case .change(let change, let place):
        let isSnapshot = change.patch.isEmpty
        if try writer.note(
          change.state, at: change.revision, of: place, isSnapshot: isSnapshot)
        {
          return
        }
      case .records(let report):
        if try writer.note(LogRecord.records(of: report)) { return }
      case .end(let error?):
        try writer.finish()
        throw error
      case .end(nil):
        try writer.finish()
        guard case .closed(let goodbye)? = mirrors.first?.status else { return }
        throw Failure(goodbye)
      }
    }
  }

  /// Show how the values differ from those that were shown before, as often as there is time for it.
  private func showLatest(
    _ mirrors: [Subscription<Value>], by writer: inout DiffWriter
  ) async throws {
    // One value says that something has changed, however much it is.
    let (news, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let readers = mirrors.map { mirror in
      Task {
        for await _ in mirror.changes { continuation.yield() }
        continuation.finish()
      }
    }
    defer { for reader in readers { reader.cancel() } }
    for await _ in news {
      for (index, mirror) in mirrors.enumerated() {
        let (state, position) = mirror.snapshot
        guard let position else { continue }
        if try writer.note(state, at: position.revision, of: index) { return }
      }
    }
    guard case .closed(let goodbye)? = mirrors.first?.status else { return }
    throw Failure(goodbye)
  }

  /// Follow the daemon's log after an action.
  private static func follow(
    _ client: Client, after sequence: UInt64, _ news: MergingStream<News>.Source
  ) -> Task<Void, Never> {
    Task {
      do {
        try await client.reports(.followLog, ["\(sequence)"]) {
          news.append(.records($0), bytes: EncodedSize.of($0))
        }
      } catch is CancellationError {
      } catch {
        news.append(.end(error), bytes: 0)
      }
    }
  }
}

/// A path that may contain `*` for every key.
struct WatchedPath {
  let path: PathArgument
  /// The keys before the first `*`.
  let start: Path

  init(_ path: PathArgument) {
    self.path = path
    start = Path(Array(path.path.keys.prefix { $0 != "*" }))
  }

  var hasStar: Bool { start != path.path }
}

enum WatchFormat: String, ExpressibleByArgument, CaseIterable {
  case state, patch, diff, pretty
}

/// A condition of `--until`.
struct UntilCondition: Sendable {
  let path: Path
  let value: Value

  /// Parse `POINTER=JSON`. A pointer may contain `=` too: the value begins after the first one that
  /// is followed by JSON.
  init(_ text: String) throws {
    guard text.contains("=") else {
      throw ValidationError("write POINTER=JSON, for example '/job/state=\"done\"'.")
    }
    var problem: JSONError?
    for index in text.indices where text[index] == "=" {
      do throws(JSONError) {
        value = try JSON.parse(String(text[text.index(after: index)...]))
      } catch {
        problem = problem ?? error
        continue
      }
      path = try PathArgument(String(text[..<index])).path
      return
    }
    let reason = problem.map { ": \($0)" } ?? ""
    throw ValidationError(
      "what follows '=' is not JSON\(reason). A string has quotes of its own.")
  }

  /// Whether the part of a document at `place` fulfils the condition.
  func holds(in part: Value?, at place: Path) -> Bool {
    let rest = Path(Array(path.keys[place.keys.count...]))
    guard let found = part?.value(at: rest) else { return false }
    do {
      try Document(found).test(value, at: .root)
      return true
    } catch {
      return false
    }
  }
}
