import ArgumentParser
import Documents
import EventLoop
import LockstepClient
import Values

struct Send: SendingCommand {
  static let configuration = CommandConfiguration(
    commandName: "send",
    abstract: "Have any action of the daemon's feature done.",
    discussion: """
      The action is the names of its cases, and behind them what it carries, in order or by name; \
      'lockstep schema' lists them. A row's action has the key of the row first. What is optional \
      or has a default may be left out. What an action carries is text as it stands, else JSON. Or \
      the whole is JSON, by names and fields. A path is a JSON Pointer, bytes are base64.

      EXAMPLES:
        lockstep send toggle 1
        lockstep send counter.incrTapped
        lockstep send resize width=640 height=480
        lockstep send beds.water 3 60
        lockstep send '{"drafts": {"rename": "milk"}}'
        lockstep send '{"increment": {"path": "/visits", "by": 2}}'
      """)

  @Argument(
    help: "An action by its names, or as JSON; '-' reads JSON from standard input.",
    completion: Completion.action, transform: ArgumentOrder.unmarked)
  var action: String

  @Argument(
    help: "What the action carries: a value for each field, or name=value.",
    transform: ArgumentOrder.unmarked)
  var values: [String] = []

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      guard let schema = client.connection.schema else {
        throw Failure(.refused, "the daemon does not say what its actions are.")
      }
      let payload = try Self.payload([action] + values, schema: schema)
      let acknowledgement = try await client.send(payload: payload, safety.mark)
      try await client.show(acknowledgement, safety, options)
    }
  }

  /// The payload of the action that the words describe.
  static func payload(_ words: [String], schema: Schema) throws(Failure) -> [UInt8] {
    let action = try ActionArgument.value(words, schema: schema)
    do {
      return try ActionJSON.payload(of: action, schema: schema)
    } catch {
      throw Failure(.usage, "that is no action of the daemon: \(error). See 'lockstep schema'.")
    }
  }
}
