import ArgumentParser
import EventLoop
import LockstepClient
import Values

struct Keys: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "List the names of what stands directly under a path.",
    discussion: """
      One name a line, as a JSON string without a terminal: an object's members, sorted; of an \
      array, its indices. The daemon sends the whole value for it, as to 'lockstep get'; \
      'lockstep ls' has the names sent alone.

      EXAMPLES:
        lockstep keys /lamps
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let value = try await client.value(at: path)
      guard let keys = value.keys else {
        throw Failure(
          .absent, "the \(value.kind) at '\(path.path.pointer)' has no parts.", at: path.path)
      }
      let output = Output(options)
      if output.isPretty {
        for key in keys { try output.lines(key.escapingControls) }
      } else {
        for key in keys { try output.line(.text(key)) }
      }
    }
  }
}

extension Value {
  /// The names of the value's parts; nil when its kind has none.
  fileprivate var keys: [String]? {
    switch self {
    case .object(let entries): entries.map(\.key).sorted { String.precedes($0, $1) }
    case .array(let elements): elements.indices.map(String.init)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes: nil
    }
  }
}
