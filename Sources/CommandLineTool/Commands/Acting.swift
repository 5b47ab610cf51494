import ArgumentParser
import Documents
import LockstepClient
import Values
import Wire

/// A command that sends actions.
protocol SendingCommand: AsyncParsableCommand {}

/// A command that has one action done and says what came of it.
protocol ActingCommand: SendingCommand {
  var options: GlobalOptions { get }
  var safety: Safety { get }

  func action() throws -> DocumentAction
}

extension ActingCommand {
  func run() async throws {
    let action = try action()
    try await Client.with(options, for: self) { client in
      try Output(options).show(try await client.send(action, safety.mark), safety)
    }
  }
}

/// How safe what is done must be.
struct Safety: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      "Answer when it survives a crash of the machine.",
      discussion: "Where it was done and may not survive, that is said, with status 6."))
  var durable = false

  var mark: Mark { durable ? .durable : .applied }
}

extension Output {
  /// Show what became of an action: `{"outcome":"reduced","revision":12}`, or for a person
  /// `revision 12`; and whether it is durable, where that was asked for.
  func show(_ acknowledgement: Acknowledgement, _ safety: Safety) throws(Failure) {
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
    let danger = safety.durable ? acknowledgement.danger : nil
    if isPretty {
      try lines(faint(outcome.text + (safety.durable && danger == nil ? ", durable" : "")))
    } else {
      var members: TrieMap<String, Value> = [
        "outcome": .text(outcome.name), "revision": Value(revision),
      ]
      if safety.durable { members.updateValue(.bool(danger == nil), forKey: "durable") }
      if let danger { members.updateValue(.text(danger), forKey: "notDurable") }
      try line(.object(members))
    }
    if let danger { throw Failure(.notDurable, "done, but not durable: \(danger)") }
  }
}

extension Acknowledgement {
  /// Why what was done may not survive a crash; nil if it does.
  fileprivate var danger: String? {
    if mark == .durable { return nil }
    return notDurable
      ?? "the daemon does not keep its state that safely: see 'lockstepd --durability'."
  }
}

/// A path and a value for it.
struct PathAndValue: ParsableArguments {
  @Argument(help: PathArgument.help, transform: PathArgument.init(_:))
  var path: PathArgument

  @Argument(help: JSONArgument.help, transform: ArgumentOrder.unmarked)
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
