import CBOR
import CounterFeature
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// The rows about the whole architecture, with real processes.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct WholeArchitectureTests {
  @Test(
    "RDX-01 RDX-18 TCA-02: one daemon owns the state, a second is refused, eight mirrors are equal")
  func oneOwner() async throws {
    try await withExample("counterd") { served in
      let second = try served.start("counterd")
      #expect(try await second.end() == .exit(1))
      #expect(second.output.contains { $0.contains("another daemon serves on") })

      var mirrors: [MirrorStore<Counter>] = []
      for _ in 0..<8 {
        mirrors.append(try await MirrorStore<Counter>.connect(.init(socket: served.socket)))
      }
      for mirror in mirrors {
        for _ in 0..<10 { try await mirror.send(.increment) }
      }
      try await eventually("all stand at the same revision") {
        mirrors.allSatisfy { $0.subscription.position?.revision == 80 }
      }
      #expect(Set(mirrors.map { $0.subscription.digest }).count == 1)
      #expect(mirrors.allSatisfy { $0.count == 80 })
      for mirror in mirrors { await mirror.connection.finish() }
    }
  }

  /// The messages that the daemon would send for a counter of 99: a patch, and a snapshot.
  private func forgeries(scope: UInt64, at revision: UInt64) throws -> [ServerMessage] {
    let (old, new) = (Counter.State(count: 1), Counter.State(count: 99))
    var (patch, whole) = (CBOREncoder(), CBOREncoder())
    #expect(new.encodeDifference(from: old, into: &patch))
    new.encode(into: &whole)
    // They are valid: a mirror that applied them would show 99.
    var mirror = old
    try CBORDecoder.read(patch.bytes) { (decoder) throws(CBORError) in
      try mirror.apply(patch: &decoder, seed: .unseeded)
    }
    #expect(mirror == new)
    return [
      .patch(scope: scope, from: revision, [.init(span: 1, patch: patch.bytes)]),
      .snapshot(
        .init(scope: scope, revision: revision, index: 0, isLast: true, bytes: whole.bytes)),
    ]
  }

  @Test("RDX-04 TCA-15 RKT-20: a client cannot change the state by a patch or a snapshot")
  func readOnly() async throws {
    try await withExample("counterd") { served in
      let mirror = try await MirrorStore<Counter>.connect(.init(socket: served.socket))
      try await mirror.send(.increment)
      for kind in 0..<2 {
        let intruder = try RawClient(path: served.socket)
        try intruder.greet(label: "intruder")
        try intruder.send(.subscribe(subscription: 1, .root, nil))
        var scope: UInt64?
        while scope == nil, let message = try intruder.receive() {
          if case .subscribed(let subscribed) = message { scope = subscribed.scope }
        }
        let forgery = try forgeries(scope: #require(scope), at: 1)[kind]
        try intruder.send(Frame.encode { forgery.encode(into: &$0) })
        let goodbye = try #require(try intruder.goodbye())
        #expect(goodbye.code == .malformed && goodbye.message.contains("comes from daemons only"))
      }
      #expect(mirror.count == 1 && mirror.subscription.position?.revision == 1)
      // The next action counts on from the unchanged state.
      #expect(try await served.run("counter", "increment").lines == ["2"])
      try await mirror.send(.increment)
      #expect(mirror.count == 3 && mirror.subscription.position?.revision == 3)
      await mirror.connection.finish()
    }
  }

  @Test("EFF-04: sending an action is one frame with the action, and nothing else")
  func oneFrame() async throws {
    try await withExample("counterd") { served in
      let proxy = try ForwardingProxy(at: served.folder + "/proxy", to: served.socket)
      defer { proxy.close() }
      let mirror = try await MirrorStore<Counter>.connect(.init(socket: proxy.path))
      let before = proxy.fromClients.count
      try await mirror.send(.decrement)
      let payload: [UInt8] = [1]
      let frame = Frame.encode {
        ClientMessage.action(number: 1, .applied, payload: payload).encode(into: &$0)
      }
      #expect(Array(proxy.fromClients[before...]) == frame)
      await mirror.connection.finish()
    }
  }

  @Test("RED-18: every example has its folder and a transcript, and Scripts/test runs its script")
  func examples() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../..").standardized
    let files = FileManager.default
    let scripts = try files.contentsOfDirectory(atPath: root.path + "/Scripts/examples")
    #expect(
      Set(scripts) == ["app-shell", "board", "cars", "counter", "feed", "prime-time", "todos"])
    for script in scripts {
      let name = script.split(separator: "-").map(\.capitalized).joined()
      let folder = root.path + "/Sources/Examples/" + name
      for part in ["Feature", "Daemon", "Client", "README.md"] {
        #expect(files.fileExists(atPath: "\(folder)/\(part)"), "\(name)/\(part)")
      }
    }
    let all = try String(contentsOf: root.appending(path: "Scripts/test"), encoding: .utf8)
    #expect(all.contains("for example in Scripts/examples/*"))
  }
}
