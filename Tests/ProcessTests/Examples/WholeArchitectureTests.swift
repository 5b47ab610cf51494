import CBOR
import CounterFeature
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// The rows that speak of the whole, with real processes.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct WholeArchitectureTests {
  @Test(
    "RDX-01 TCA-02: one daemon owns the state, a second is refused, and eight mirrors are equal")
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
        mirrors.allSatisfy { $0.position?.revision == 80 }
      }
      #expect(Set(mirrors.map { $0.digest }).count == 1)
      #expect(mirrors.allSatisfy { $0.count == 80 })
      for mirror in mirrors { await mirror.finish() }
    }
  }

  @Test("RDX-03 RDX-04 TCA-15: only actions change the state: who sends a patch is shown the door")
  func readOnly() async throws {
    try await withExample("counterd") { served in
      let before = try await served.lockstep("digest").lines
      for type in [MessageType.snapshot, .patch] {
        let intruder = try RawClient(path: served.socket)
        try intruder.greet(label: "intruder")
        try intruder.send(
          Frame.encode { encoder in
            encoder.array(5)
            encoder.encode(type.rawValue)
            for number in [0, 0, 1, 99] { encoder.encode(number) }
          })
        let code = try #require(try intruder.goodbye()).code
        #expect(code == .unknownMessage || code == .malformed, "\(code)")
      }
      #expect(try await served.lockstep("digest").lines == before)
      #expect(try await served.run("counter", "increment").lines == ["1"])
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
      await mirror.finish()
    }
  }

  @Test("RED-18: every example has its folder, with a transcript, and a script that runs it")
  func examples() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../..").standardized
    let files = FileManager.default
    let scripts = try files.contentsOfDirectory(atPath: root.path + "/Scripts/examples")
    #expect(Set(scripts) == ["app-shell", "cars", "counter", "feed", "prime-time", "todos"])
    for script in scripts {
      let name = script.split(separator: "-").map(\.capitalized).joined()
      let folder = root.path + "/Sources/Examples/" + name
      for part in ["Feature", "Daemon", "Client", "README.md"] {
        #expect(files.fileExists(atPath: "\(folder)/\(part)"), "\(name)/\(part)")
      }
    }
  }
}
