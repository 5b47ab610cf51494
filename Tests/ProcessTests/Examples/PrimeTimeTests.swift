import Foundation
import LockstepClient
import PrimeTimeFeature
import Testing

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct PrimeTimeTests {
  @Test("TCA-14: buttons send actions, and every watcher sees the number")
  func counting() async throws {
    try await withExample("primetimed") { example in
      let watcher = try example.start("primetime", "watch")
      try await watcher.line("count 0")
      let done = try await example.run("primetime", "+")
      #expect(done.lines == ["count 1, favorites [], nobody, 0 activities"])
      try await watcher.line("count 1")
      #expect(try await example.run("primetime", "-").status == .exit(0))
      try await watcher.line("count 0")
      #expect(try await example.lockstep("send", "counter.incrTapped").status == .exit(0))
      try await watcher.line("count 1")
    }
  }

  @Test("TCA-12: favorites are saved and deleted, the feed follows, and every action is logged")
  func favorites() async throws {
    try await withExample("primetimed") { example in
      for command in ["+", "save", "+", "save", "+", "save"] {
        #expect(try await example.run("primetime", command).status == .exit(0))
      }
      let done = try await example.run("primetime", "delete", "0", "1")
      #expect(done.lines == ["count 3, favorites [3], nobody, 5 activities"])
      try await example.daemon.line("favoritePrimes.deleteFavoritePrime: count 3, favorites [3]")

      let refused = try await example.run("primetime", "delete", "0", "1")
      #expect(refused.status == .exit(1))
      #expect(refused.lines == ["Error: rejected: there is no favorite prime at 1"])
      #expect(try await example.lockstep("get", "/favoritePrimes").lines == ["[3]"])
    }
  }

  @Test("TCA-03: a user logs in and out, with the kernel's user number as identifier")
  func account() async throws {
    try await withExample("primetimed") { example in
      _ = try await example.run("primetime", "login", "Blob", "--bio", "Counts.")
      #expect(
        try await example.lockstep("get", "/loggedInUser").lines
          == [#"{"bio":"Counts.","id":\#(getuid()),"name":"Blob"}"#])
      let done = try await example.run("primetime", "logout")
      #expect(done.lines == ["count 0, favorites [], nobody, 0 activities"])
    }
  }

  @Test("TCA-12: a client scoped to the counter gets none of 100 other actions, and can send")
  func scope() async throws {
    try await withExample("primetimed") { example in
      let scoped = try example.start("primetime", "scope")
      try await scoped.line("count 0")
      // The client frees its store of the whole after the first state of the scope.
      try await eventually("only the counter is mirrored") {
        try await report(on: scoped, example)["scopes"] as? [String] == ["/0"]
      }
      let before = try await report(on: scoped, example)["patches"] as? Int ?? -1

      let app = try await MirrorStore<PrimeTime>.connect(.init(socket: example.socket))
      for number in 0..<100 {
        let user = User(id: number, name: "Blob \(number)", bio: "")
        try await app.send(.account(.login(user)))
      }
      #expect(try await report(on: scoped, example)["patches"] as? Int == before)
      #expect(scoped.output == ["count 0"])

      scoped.write("+")
      try await scoped.line("count 1")
      #expect(try await report(on: scoped, example)["patches"] as? Int == before + 1)
      try await eventually("the app shows 1") { app.count == 1 }
      await app.connection.finish()
    }
  }

  /// The daemon's report on one of its clients.
  private func report(
    on client: ChildProcess, _ example: ServedExample
  ) async throws -> [String: any Sendable] {
    for line in try await example.lockstep("clients").lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
      if let object = object as? [String: any Sendable], object["pid"] as? Int == Int(client.pid) {
        return object
      }
    }
    return [:]
  }
}
