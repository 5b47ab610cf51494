import ArgumentParser
import LockstepClient
import Values

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Show what stands at a path.",
    discussion: """
      '' or no path is the whole; '/' is the member whose name is empty. Where nothing stands \
      nothing is written, and the status is 1: null is a value. The state of a daemon with types \
      of its own is shown by the names of its fields and cases: '/todos/3/title'.
      """)

  @Argument(help: PathArgument.help, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let path = try client.resolve(path)
      let mirror = try await client.mirror(of: path.scope)
      let state = mirror.state
      guard let value = state?.value(at: path.rest) else {
        throw Failure(.refused, state.absence(of: path.rest, in: path.scope))
      }
      try Output(options).show(value)
    }
  }
}
