public import ArgumentParser
import LockstepClient
import SocketPaths

/// The options of `lockstep inspect`, and of the program that it runs.
public struct InspectorOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The port on loopback; any that is free by default.", valueName: "number"))
  public var port: UInt16 = 0

  @Flag(inversion: .prefixedNo, help: "Open the page in a browser, if there is a display.")
  public var open = true

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  public init() {}

  /// The daemon's socket.
  var socket: String { options.socket ?? SocketPath.standard }

  /// What the inspector is called in the daemon's list of clients.
  var label: String { options.label ?? Client.label(of: Inspect.self) }

  /// Throws if no daemon serves there.
  public func check() async throws {
    let client = try await Client.connect(to: socket, label: label)
    await client.connection.finish()
  }

  /// The arguments with which another program gets the same options.
  fileprivate var arguments: [String] {
    var arguments = ["--socket", socket, "--port", "\(port)", open ? "--open" : "--no-open"]
    if let label = options.label { arguments += ["--label", label] }
    if options.json { arguments.append("--json") }
    return arguments
  }
}

struct Inspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Look at a daemon in a browser: state, actions, effects, clients, the past.",
    discussion: """
      Serves one page on loopback, and writes its address, which has a secret in it: who knows it may \
      do what you may, so do not pass it on. It ends with SIGINT. The page shows the state as a tree \
      that changes before your eyes, the actions as they come and what each changed, any revision of \
      the past, the effects, and how far each client lags; it can send actions, jump, undo and pause, \
      as far as the daemon lets you.

      The program 'lockstep-inspect' does it, which is to be beside this one or in the PATH. A machine \
      that is far away: forward the port with 'ssh -L', to the same number.

      EXAMPLES:
        lockstep inspect
        lockstep inspect --port 8123 --no-open
      """)

  @OptionGroup var inspector: InspectorOptions

  func run() async throws {
    try await inspector.check()
    try ProgramPath.become("lockstep-inspect", inspector.arguments)
  }
}
