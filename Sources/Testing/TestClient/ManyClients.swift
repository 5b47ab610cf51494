import CBOR
import Documents
import Glibc
import Values
import Wire

/// Many connections that never reconnect: each mirrors `/load`, and all of them increment it as
/// fast as they are answered. Tests use it to show that a restart of the daemon ends no connection
/// and loses no action.
struct ManyClients {
  private let clients: [RawClient]
  /// The revision of each client's subscription.
  private var revisions: [UInt64]
  private var actions: UInt64 = 0

  init(socket: String, count: Int) throws {
    var clients: [RawClient] = []
    var revisions: [UInt64] = []
    for number in 0..<count {
      let client = try RawClient(path: socket)
      try client.greet(label: "client \(number)")
      try client.send(.subscribe(subscription: 1, ["load"], nil))
      clients.append(client)
      revisions.append(0)
    }
    self.clients = clients
    self.revisions = revisions
  }

  /// Run for this time, and return the number of actions of each client, and the longest time that
  /// all waited for an answer. Throws when a connection ends or a revision is missing.
  mutating func run(
    for time: Duration, say: (String) -> Void
  ) throws -> (actions: UInt64, longest: Duration) {
    let end = ContinuousClock.now + time
    var longest = Duration.zero
    while actions < 2 || ContinuousClock.now < end {
      let start = ContinuousClock.now
      try round()
      longest = max(longest, ContinuousClock.now - start)
      if actions == 1 { say("connected") }
    }
    return (actions, longest)
  }

  private mutating func round() throws {
    actions += 1
    var payload = CBOREncoder()
    DocumentAction.increment(["load"], by: 1).encode(into: &payload)
    for client in clients {
      try client.send(.action(number: actions, .applied, payload: payload.bytes))
    }
    for index in clients.indices { try awaitAnswer(index) }
  }

  private mutating func awaitAnswer(_ index: Int) throws {
    while let message = try clients[index].receive() {
      switch message {
      case .acknowledgement(let answer):
        guard case .reduced = answer.outcome, answer.first == actions, answer.last == actions else {
          throw RawClient.Failure(description: "client \(index) was told \(answer)")
        }
        guard revisions[index] >= answer.revision else {
          throw RawClient.Failure(
            description: "client \(index) stands at \(revisions[index]), and \(answer) has come")
        }
        return
      case .subscribed(let subscribed):
        revisions[index] = subscribed.revision
      case .patch(scope: _, let from, let spans):
        guard from <= revisions[index] else {
          throw RawClient.Failure(
            description: "client \(index) stands at \(revisions[index]): a patch begins at \(from)")
        }
        revisions[index] = spans.reduce(from) { $0 + $1.span }
      case .goodbye(let goodbye):
        throw RawClient.Failure(description: "client \(index) was told goodbye: \(goodbye)")
      case .welcome, .snapshot, .pong, .bookmark, .digest, .schema, .report, .restarting,
        .restarted, .decided:
        break
      }
    }
    throw RawClient.Failure(description: "the connection of client \(index) ended")
  }
}
