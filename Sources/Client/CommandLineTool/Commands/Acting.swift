import ArgumentParser
import Documents
import EventLoop
import Lockstep
import LockstepClient
import Values
import Wire

/// A command that sends actions.
protocol SendingCommand: AsyncParsableCommand {}

/// A command that sends one action and shows its outcome.
protocol ActingCommand: SendingCommand {
  var options: GlobalOptions { get }
  var safety: Safety { get }

  func action() throws -> DocumentAction
}

extension ActingCommand {
  func run() async throws { try await perform(try action()) }

  func perform(_ action: DocumentAction) async throws {
    try await Client.with(options, for: self) { client in
      let acknowledgement: Acknowledgement
      do {
        acknowledgement = try await client.send(action, safety.mark)
      } catch ClientError.rejected(let rejection) {
        var failure = await client.failure(of: action, rejection, options)
        // What is not there is no such value, either.
        if case .test = action, failure.code == Rejection.Code.badPath.name {
          failure.status = .differs
        }
        throw failure
      }
      try await client.show(acknowledgement, safety, options)
    }
  }
}

/// How durable the action must be.
struct Safety: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      "Answer when it survives a crash of the machine.",
      discussion: "Where it was done and may not survive, that is said, with status 6."))
  var durable = false

  var mark: Mark { durable ? .durable : .applied }
}

extension Client {
  /// Show the outcome of an action: `{"outcome":"reduced","revision":12}`, or for a person
  /// `revision 12`; and whether it is durable, if that was requested.
  func show(
    _ acknowledgement: Acknowledgement, _ safety: Safety, _ options: GlobalOptions
  ) async throws(Failure) {
    let danger = safety.durable ? await danger(of: acknowledgement) : nil
    do {
      try Output(options).show(
        acknowledgement, isDurable: safety.durable ? danger == nil : nil, danger)
    } catch {
      // A script that sees only the status must not take it for an action that was not done.
      let done = "done at revision \(acknowledgement.revision), but the answer is lost: "
      throw Failure(error.status, done + error.message)
    }
    if let danger { throw Failure(.notDurable, "done, but not durable: \(danger)".endingInDot) }
  }

  /// The reason that an action may not survive a crash; nil if it does.
  private func danger(of acknowledgement: Acknowledgement) async -> String? {
    if acknowledgement.mark == .durable { return nil }
    if let reason = acknowledgement.notDurable { return reason }
    let status = try? await report(.status)
    guard status?.child("durability") == "none" else {
      return "the daemon does not keep its state that safely: it runs with '--durability async'."
    }
    return "the daemon does not keep its state: it has no state directory ('--state-dir'), or runs "
      + "with '--durability none'."
  }
}

extension Output {
  fileprivate func show(
    _ acknowledgement: Acknowledgement, isDurable: Bool?, _ danger: String?
  ) throws(Failure) {
    let text = acknowledgement.summary.text
    if isPretty { return try lines(faint(text + (isDurable == true ? ", durable" : ""))) }
    guard case .object(var members) = acknowledgement.value else { return }
    if let isDurable { members.updateValue(.bool(isDurable), forKey: "durable") }
    if let danger { members.updateValue(.text(danger), forKey: "notDurable") }
    try line(.object(members))
  }
}

extension Acknowledgement {
  /// The outcome as JSON.
  var value: Value { ["outcome": .text(summary.name), "revision": Value(revision)] }

  /// The outcome of the action, for programs and for people.
  fileprivate var summary: (name: String, text: String) {
    switch outcome {
    case .reduced: ("reduced", "revision \(revision)")
    case .unchanged: ("unchanged", "unchanged at revision \(revision)")
    case .swallowed: ("swallowed", "a middleware of the daemon took the action")
    case .accepted: ("accepted", "accepted at revision \(revision); its work goes on")
    case .rejected: ("rejected", "rejected")
    case .outcomeUnknown: ("outcomeUnknown", "nobody knows what became of it")
    }
  }
}

/// A path and a value for it.
struct PathAndValue: ParsableArguments {
  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path: PathArgument

  @Argument(help: JSONArgument.help, transform: ArgumentOrder.unmarked)
  var json: String

  @Flag(help: "The value is a string as it stands, not JSON.")
  var text = false

  func value() throws(Failure) -> Value { try JSONArgument.value(json, isText: text) }
}

/// The source and the destination of a value.
struct FromAndTo: ParsableArguments {
  @Argument(
    help: "What: a JSON Pointer.", completion: Completion.path, transform: PathArgument.init(_:))
  var from: PathArgument

  @Argument(
    help: "Where to: a JSON Pointer, whose parent exists.", completion: Completion.path,
    transform: PathArgument.init(_:))
  var to: PathArgument
}
