import ArgumentParser
import Documents
import LockstepClient

struct Send: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send",
    abstract: "Have any action of the daemon's feature done.",
    discussion: """
      The action is JSON by its name and fields, as 'lockstep schema' lists them:
        {"increment": {"path": "/visits", "by": 2}}
        {"transaction": {"actions": [{"remove": {"path": "/a"}}]}}
      An action without fields is its name: "reset". A path is a JSON Pointer.
      """)

  @Argument(help: "An action as JSON; '-' reads it from standard input.")
  var action: String

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    let action = try JSONArgument.value(action)
    try await Client.with(options, for: self) { client in
      guard let schema = client.store.schema else {
        throw Failure(.refused, "the daemon does not say what its actions are.")
      }
      let payload: [UInt8]
      do {
        payload = try ActionJSON.payload(of: action, schema: schema)
      } catch {
        throw Failure(.usage, "that is no action of the daemon: \(error). See 'lockstep schema'.")
      }
      try Output(options).show(try await client.send(payload: payload))
    }
  }
}
