import ArgumentParser
import Documents
import LockstepClient
import Values
import Wire

/// A command that has one action done and says what came of it.
protocol ActingCommand: AsyncParsableCommand {
  var options: GlobalOptions { get }

  func action() throws -> DocumentAction
}

extension ActingCommand {
  func run() async throws {
    let action = try action()
    try await Client.with(options, for: self) { client in
      try Output(options).show(try await client.send(action))
    }
  }
}

extension Output {
  /// Show what became of an action: `{"outcome":"reduced","revision":12}`, or for a person
  /// `revision 12`.
  func show(_ acknowledgement: Acknowledgement) throws(Failure) {
    let revision = acknowledgement.revision
    let outcome: (name: String, text: String) =
      switch acknowledgement.outcome {
      case .reduced: ("reduced", "revision \(revision)")
      case .unchanged: ("unchanged", "unchanged at revision \(revision)")
      case .swallowed: ("swallowed", "a middleware of the daemon took the action")
      case .accepted: ("accepted", "accepted at revision \(revision); its work goes on")
      case .rejected: ("rejected", "rejected")
      case .outcomeUnknown: ("outcomeUnknown", "nobody knows what became of it")
      }
    if isPretty { return try lines(faint(outcome.text)) }
    try line(["outcome": .text(outcome.name), "revision": Value(revision)])
  }
}

/// A path and a value for it.
struct PathAndValue: ParsableArguments {
  @Argument(help: PathArgument.help, transform: PathArgument.init(_:))
  var path: PathArgument

  @Argument(help: JSONArgument.help)
  var json: String

  @Flag(help: "The value is a string as it stands, not JSON.")
  var text = false

  func value() throws(Failure) -> Value { try JSONArgument.value(json, isText: text) }
}

/// Where something comes from and goes to.
struct FromAndTo: ParsableArguments {
  @Argument(help: "What: a JSON Pointer.", transform: PathArgument.init(_:))
  var from: PathArgument

  @Argument(
    help: "Where to: a JSON Pointer, whose parent exists.", transform: PathArgument.init(_:))
  var to: PathArgument
}
