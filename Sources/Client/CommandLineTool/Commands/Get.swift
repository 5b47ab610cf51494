import ArgumentParser
import EventLoop
import LockstepClient
import Values

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Show what stands at a path.",
    discussion: """
      '' or no path is the whole; '/' is the member whose name is empty. Where nothing stands \
      nothing is written, and the status is 8: null is a value. The state of a daemon with types \
      of its own is shown by the names of its fields and cases: '/todos/3/title'.

      With --at what stood there at an earlier revision, as far as the daemon remembers: see \
      'lockstep history'.

      EXAMPLES:
        lockstep get /lamps/hall
        lockstep get /lamps/hall --at 40
        lockstep --json get | jq .lamps
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @Option(
    help: ArgumentHelp("What stood there at this revision.", valueName: "revision"),
    transform: NumberArgument.atLeast(0))
  var at: UInt64?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      guard let at else { return try Output(options).show(try await client.value(at: path)) }
      let path = try client.resolve(path)
      guard let value = try await client.value(at: path, revision: at) else {
        throw Failure(
          .absent, "nothing stood at '\(path.path.pointer)' at revision \(at).", at: path.path)
      }
      try Output(options).show(value)
    }
  }
}

extension Client {
  /// The current value at a path. If there is none, throws a failure that describes the nearest
  /// value.
  func value(at path: PathArgument) async throws -> Value {
    let path = try resolve(path)
    let state = try await mirror(of: path.scope).state
    guard let value = state?.value(at: path.rest) else {
      throw Failure(.absent, await absence(of: path, in: state), at: path.path)
    }
    return value
  }
}
