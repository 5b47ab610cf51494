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
      Shows the current value at once, then the value after each change, none left out (see \
      --latest). Formats:
        state   the value as one line of JSON; an empty line when nothing stands there
        patch   one line for each revision: {"revision": 12, "patch": [...]}, a JSON Patch \
      (RFC 6902) with paths below the watched value. The first one puts the whole, and so does \
      any after a reconnection that could not be bridged; {"op": "remove", "path": ""} says that \
      nothing stands there any more. 'lockstep patch' understands the patches.
        pretty  the value laid out, below its revision; the default on a terminal

      Ends with status 4 when the daemon says goodbye or the connection is lost, unless \
      --reconnect; when the reader of its output goes away; and by SIGINT, with the shell's 130.

      EXAMPLES:
        lockstep watch /lamps
        lockstep watch /job --until '/job/state="done"' --timeout 60
        lockstep watch --format patch --reconnect >>changes.jsonl
      """)

  @Argument(help: PathArgument.help, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @Option(help: "What to write: state, patch, or pretty.")
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

  @Flag(help: "Come back when the connection is lost, and wait for a daemon that is not there.")
  var reconnect = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    for until in until where !path.path.leads(to: until.path) {
      throw ValidationError(
        "--until looks at '\(until.path.pointer)', which is not within the watched "
          + "'\(path.path.pointer)'.")
    }
  }

  func run() async throws {
    try await Client.with(options, for: self, reconnects: reconnect) { client in
      StandardOutput.endWithReader()
      if reconnect { Self.tellConnection(of: client) }
      let path = try client.resolve(path)
      for until in until { _ = try client.resolve(PathArgument(until.path)) }
      let mirror = try await client.mirror(of: path.scope, everyRevision: !latest)
      let output = Output(options)
      if output.isPretty, mirror.state?.value(at: path.rest) == nil {
        let absence = await client.absence(of: path, in: mirror.state)
        StandardError.note("waiting for '\(path.path.pointer)': \(absence)")
      }
      var writer = WatchWriter(
        output: output, format: format, path: path, conditions: until, limit: count)
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

enum WatchFormat: String, ExpressibleByArgument, CaseIterable {
  case state, patch, pretty
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
