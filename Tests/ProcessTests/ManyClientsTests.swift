import CBOR
import DaemonCore
import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct ManyClientsTests {
  @Test func `ten processes that increment a thousand times each make ten thousand`() async throws {
    try await withDaemon { served in
      let clients = try await start(10, served)
      for client in clients { client.write("increment /sum 1000") }
      for client in clients {
        try await client.line("done")
        let revisions = client.output.filter { $0.hasPrefix("ack ") }
          .compactMap { UInt64($0.dropFirst(4)) }
        #expect(revisions.count == 1000)
        #expect(zip(revisions, revisions.dropFirst()).allSatisfy { $0 < $1 })
      }
      let mirror = try await served.mirror()
      #expect(mirror.value("/sum") == 10_000)
      #expect(mirror.position?.revision == 10_000)
      for client in clients { client.signal(SIGKILL) }
    }
  }

  @Test func `actions sent together are acknowledged in order, after their patches`() async throws {
    try await withDaemon { served in
      let acknowledged = try await blocking {
        let client = try served.raw()
        try client.greet()
        try client.send(.subscribe(subscription: 1, .root, nil))
        var bytes: [UInt8] = []
        for number in 1...5000 as ClosedRange<UInt64> {
          // Every third is rejected: the value is no array.
          let action: DocumentAction =
            number % 3 == 0 ? .append(["n"], 1) : .increment(["n"], by: 1)
          bytes += Frame.encode {
            ClientMessage.action(number: number, .applied, payload: action.payload)
              .encode(into: &$0)
          }
        }
        try client.send(bytes)
        return try Self.readInOrder(client, through: 5000)
      }
      #expect(acknowledged.reduced == 5000 - 5000 / 3)
      #expect(acknowledged.rejected == 5000 / 3)
    }
  }

  private static func readInOrder(
    _ client: RawClient, through last: UInt64
  ) throws -> (reduced: Int, rejected: Int) {
    var seen: UInt64 = 0
    var next: UInt64 = 1
    var revision: UInt64 = 0
    var (reduced, rejected) = (0, 0)
    while next <= last {
      switch try client.receive() {
      case .patch(_, let from, let patches): seen = patches.reduce(from) { $0 + $1.span }
      case .acknowledgement(let acknowledgement):
        #expect(acknowledgement.first == next)
        #expect(acknowledgement.revision >= revision)
        #expect(acknowledgement.revision <= seen, "it came before the patch")
        next = acknowledgement.last + 1
        revision = acknowledgement.revision
        let count = Int(acknowledgement.last - acknowledgement.first) + 1
        if case .rejected = acknowledgement.outcome { rejected += count } else { reduced += count }
      case nil: throw ChildProcess.Failure(description: "the connection ended")
      default: break
      }
    }
    return (reduced, rejected)
  }

  @Test func `fifty mirrors end with the daemon's digest`() async throws {
    try await withDaemon { served in
      let first = try await served.mirror()
      try await first.send(DocumentAction.set(.root, RandomChanges.beginning))
      let clients = try await start(10, served)
      // Each process mirrors the root; these connections mirror parts too.
      let paths: [Path] = [.root, ["objects"], ["lists"], ["lists", "l0"]]
      var mirrors: [Subscription<Value>] = []
      for number in 0..<40 { mirrors.append(try await served.mirror(of: paths[number % 4])) }

      for (seed, client) in clients.enumerated() { client.write("random \(seed) 200") }
      for client in clients { try await client.line("done") }
      let revision = try await first.nextDaemonDigest().revision
      #expect(revision > 500, "most of the changes are no changes")

      let whole = try await first.bothDigests()
      #expect(whole.0 == whole.1)
      for client in clients {
        client.write("reached \(revision)")
        #expect(try await client.line("at") == "at \(revision) \(whole.1)")
        client.signal(SIGKILL)
      }
      for mirror in mirrors {
        try await mirror.reached(revision: revision)
        let (ours, theirs) = try await mirror.bothDigests()
        #expect(ours == theirs, "the mirror of \(mirror.path)")
        #expect(mirror.connection.divergences == 0)
        if mirror.path.keys.isEmpty { #expect(theirs == whole.1) }
      }
    }
  }

  private func start(_ count: Int, _ served: Served) async throws -> [ChildProcess] {
    var clients: [ChildProcess] = []
    for number in 0..<count {
      clients.append(try ChildProcess(Binaries.client, [served.socket, "client\(number)"]))
    }
    for client in clients { try await client.line("live") }
    return clients
  }
}
