import ClientCore
import DaemonCore
import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// The rights of processes of several users, which the kernel identifies.
@Suite(
  .enabled(if: Binaries.isThere, Binaries.comment),
  .enabled(if: geteuid() == 0, "only root can start processes of other users"),
  .timeLimit(.minutes(2)))
struct TwoUsersTests {
  /// Users and a group that need no entry in the password file.
  private static let alice: UInt32 = 4242
  private static let nobody: UInt32 = 65534
  private static let operators: UInt32 = 4343

  private static let policy = """
    version: 1
    rules:
      - users: [root]
        connect: true
        administer: true
        read: [/]
        act: ["*"]
      - users: [\(alice)]
        connect: true
        read: [/]
        deny-read: [/secret, /users/*/password]
        act: ["*"]
        deny-act: [remove]
        write: [/]
      - groups: [\(operators)]
        connect: true
        read: [/public]
    """

  /// A connection of another user, and every byte received on it.
  private final class Peer {
    let process: ChildProcess

    init(
      _ served: Served, uid: UInt32, gid: UInt32? = nil, groups: [UInt32] = [],
      inherits: Bool = false
    ) throws {
      process = try ChildProcess(
        Binaries.client,
        [
          served.socket, inherits ? "inherit" : "relay", "\(uid)", "\(gid ?? uid)",
          groups.map(String.init).joined(separator: ","),
        ])
    }

    func say(_ messages: ClientMessage...) {
      for message in messages {
        process.write(Hex.text(Frame.encode { message.encode(into: &$0) }))
      }
    }

    /// Says hello, and subscribes to paths.
    func begin(_ paths: Path...) async throws {
      try await process.line("connected")
      say(.hello(.init(versions: 1...1, label: "peer")))
      for (index, path) in paths.enumerated() {
        say(.subscribe(subscription: UInt64(index), path, nil))
      }
      try await eventually("welcome") { !messages.isEmpty }
    }

    var bytes: [UInt8] {
      process.output.filter { $0.hasPrefix("bytes ") }.flatMap { Hex.bytes($0.dropFirst(6)) }
    }

    var messages: [ServerMessage] {
      var decoder = FrameDecoder(limit: 1 << 30)
      var messages: [ServerMessage] = []
      bytes.withUnsafeBytes { bytes in
        try? decoder.receiveAll(bytes) { item throws(WireError) in
          messages.append(try ServerMessage(item, seed: .unseeded))
        }
      }
      return messages
    }

    /// Whether this text is anywhere in the received bytes.
    func was(told text: String) -> Bool {
      let (bytes, text) = (bytes, Array(text.utf8))
      return bytes.indices.contains { bytes[$0...].starts(with: text) }
    }

    var welcome: ServerMessage.Welcome? {
      if case .welcome(let welcome)? = messages.first { welcome } else { nil }
    }

    /// The daemon's goodbye, after it has closed the connection.
    func goodbye() async throws -> Goodbye? {
      try await process.line("closed")
      if case .goodbye(let goodbye)? = messages.last { return goodbye } else { return nil }
    }

    /// The outcomes of actions as text: a number each, and the message of a rejection.
    func answers() -> [String] {
      messages.compactMap { message in
        guard case .acknowledgement(let answer) = message else { return nil }
        if case .rejected(let why) = answer.outcome { return "\(why.code) \(why.message)" }
        return "\(answer.outcome)"
      }
    }
  }

  /// A daemon with a policy, whose socket every user can reach.
  private func withPolicy(
    _ policy: String = policy, _ arguments: [String] = [],
    _ body: (Served, _ file: String) async throws -> Void
  ) async throws {
    try await withFolder { folder in
      chmod(folder, 0o711)
      let file = folder + "/policy.yaml"
      try write(policy, to: file)
      let daemon = try await startDaemon(
        folder + "/socket", ["--policy", file, "--log-actions"] + arguments)
      defer { daemon.signal(SIGKILL) }
      let served = Served(folder: folder, socket: folder + "/socket", daemon: daemon)
      do {
        try await body(served, file)
      } catch {
        Issue.record("the daemon said: \(daemon.output.suffix(20))")
        throw error
      }
      #expect(!daemon.output.contains { $0.contains("<secret") }, "a log line quotes a value")
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
    }
  }

  private func write(_ policy: String, to file: String) throws {
    try policy.write(toFile: file, atomically: true, encoding: .utf8)
    chmod(file, 0o644)
  }

  private func rereads(_ served: Served, _ policy: String, _ file: String) async throws {
    try write(policy, to: file)
    served.daemon.signal(SIGHUP)
    try await served.daemon.line(with: "policy read again")
  }

  // MARK: Connecting

  @Test func `without a policy no other user may connect, even if the socket's mode permits it`()
    async throws
  {
    try await withDaemon(["--mode", "666"]) { served in
      chmod(served.folder, 0o711)
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(["secret"], "<secret>"))
      let peer = try Peer(served, uid: Self.nobody)
      let goodbye = try await peer.goodbye()
      #expect(goodbye?.code == .denied)
      let message = goodbye?.message ?? ""
      #expect(message.hasPrefix("the daemon's policy does not let user 65534 connect: "))
      #expect(message.contains("it has no policy file (--policy)"))
      #expect(peer.messages.count == 1 && !peer.was(told: "secret"))
      mirror.connection.close()
    }
    try await withDaemon { served in
      chmod(served.folder, 0o711)
      let peer = try Peer(served, uid: Self.nobody)
      #expect(try await peer.process.line("failed") == "failed \(EACCES)")
    }
  }

  @Test func `a policy admits by user and by any group`() async throws {
    try await withPolicy { served, _ in
      #expect(try await Peer(served, uid: Self.nobody).goodbye()?.code == .denied)
      let alice = try Peer(served, uid: Self.alice)
      try await alice.begin()
      #expect(alice.welcome?.peer.uid == UInt64(Self.alice))
      #expect(alice.welcome?.peer.pid == UInt64(alice.process.pid))
      for peer in [
        try Peer(served, uid: Self.nobody, gid: Self.operators),
        try Peer(served, uid: Self.nobody, groups: [7, Self.operators]),
      ] {
        try await peer.begin()
        #expect(peer.welcome?.peer.uid == UInt64(Self.nobody))
      }
    }
  }

  @Test func `a child that continues a connection has the rights of the process that made it`()
    async throws
  {
    try await withPolicy { served, _ in
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(["secret"], "<secret>"))
      let child = try Peer(served, uid: Self.nobody, inherits: true)
      try await child.begin([])
      #expect(child.welcome?.peer.uid == 0)
      #expect(child.welcome?.peer.pid == UInt64(child.process.pid))
      try await eventually("it sees all") { child.was(told: "<secret>") }
      mirror.connection.close()
    }
  }

  // MARK: Seeing and acting

  @Test func `no byte contains anything that a user may not see`() async throws {
    try await withPolicy { served, _ in
      let mirror = try await served.mirror()
      let start: Value = [
        "public": "<public 0>", "secret": ["deep": "<secret 0>"],
        "users": ["bob": ["name": "<public 0>", "password": "<secret 0>"]],
      ]
      try await mirror.send(DocumentAction.merge([], start))
      let alice = try Peer(served, uid: Self.alice)
      try await alice.begin([], ["users", "bob"], ["secret"], ["users", "bob", "password"])
      let member = try Peer(served, uid: Self.nobody, groups: [Self.operators])
      try await member.begin([], ["users"])
      for number in 1...300 as ClosedRange<Int64> {
        let secret = Value.text("<secret \(number)>")
        mirror.post(DocumentAction.set(["secret", .text("<secret key \(number)>")], secret))
        mirror.post(DocumentAction.set(["users", "bob", "password"], secret))
        mirror.post(DocumentAction.set(["public"], .text("<public \(number)>")))
        if number.isMultiple(of: 50) {
          mirror.post(DocumentAction.set(["secret"], [.text("<secret list>")]))
          mirror.post(DocumentAction.set(["secret"], ["deep": secret]))
          // One process is stopped, and gets the changes as one patch.
          alice.process.signal(SIGSTOP)
        }
        if number % 50 == 25 { alice.process.signal(SIGCONT) }
      }
      alice.process.signal(SIGCONT)
      try await mirror.send(DocumentAction.set(["public"], "<public end>"))
      for peer in [alice, member] {
        try await eventually("the end came") { peer.was(told: "<public end>") }
        #expect(!peer.was(told: "secret") && !peer.was(told: "password"))
      }
      #expect(alice.was(told: "bob") && !member.was(told: "bob"))
      // Reports do not reveal it either.
      for name in ["log", "why", "clients", "effects", "metrics", "status"] {
        alice.say(.query(number: 1, name, arguments: ["1"]))
      }
      alice.say(.ping(9))
      try await eventually("pong") {
        alice.messages.contains { if case .pong = $0 { true } else { false } }
      }
      #expect(!alice.was(told: "secret"))
      for (peer, users) in [(alice, true), (member, false)] {
        peer.say(.query(number: 2, "parts", arguments: ["", "9"]))
        try await eventually("the parts are listed") {
          peer.messages.contains { if case .report(2, _, _) = $0 { true } else { false } }
        }
        #expect(peer.was(told: "/public") && peer.was(told: "/users/bob/name") == users)
        #expect(!peer.was(told: "secret") && !peer.was(told: "password"))
      }
      mirror.connection.close()
    }
  }

  @Test func `an action without the right to it is not performed`() async throws {
    try await withPolicy { served, _ in
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.merge([], ["public": 1, "secret": "<secret>"]))
      let alice = try Peer(served, uid: Self.alice)
      try await alice.begin([])
      let actions: [DocumentAction] = [
        .remove(["public"]), .test(["secret"], "<secret>"), .copy(from: ["secret"], to: ["a"]),
        .move(from: ["secret"], to: ["a"]), .increment(["secret"], by: 1), .set(["public"], 2),
      ]
      for (index, action) in actions.enumerated() {
        alice.say(.action(number: UInt64(index) + 1, .applied, payload: action.payload))
      }
      let member = try Peer(served, uid: Self.nobody, groups: [Self.operators])
      try await member.begin(["public"])
      member.say(
        .action(number: 1, .applied, payload: DocumentAction.set(["public"], 3).payload))
      try await eventually("all are answered") {
        alice.answers().count == 6 && member.answers().count == 1
      }
      #expect(
        alice.answers() == [
          "9 you may not send remove", "9 test needs the right to read /secret",
          "9 copy needs the right to read /secret", "9 move needs the right to read /secret",
          "9 increment needs the right to read /secret", "reduced",
        ])
      #expect(member.answers() == ["9 you may not send set"])
      try await eventually("the one that was done") { mirror.value("/public") == 2 }
      #expect(mirror.state?.isSame(as: ["public": 2, "secret": "<secret>"]) == true)
      mirror.connection.close()
    }
  }

  // MARK: The file

  @Test func `SIGHUP reloads the policy, all of it or nothing`() async throws {
    try await withPolicy { served, file in
      let mirror = try await served.mirror()
      try await mirror.send(
        DocumentAction.merge([], ["public": "<public>", "secret": "<secret>"]))
      let alice = try Peer(served, uid: Self.alice)
      try await alice.begin([], ["public"])
      try await eventually("it sees what is public") { alice.was(told: "<public>") }

      // With a mistake in it the former policy stays.
      try write(Self.policy + "\n    reed: [/]\n", to: file)
      served.daemon.signal(SIGHUP)
      let said = try await served.daemon.line(with: "the former policy stays")
      #expect(said.contains(file + ":"))
      #expect(try await Peer(served, uid: Self.nobody).goodbye()?.code == .denied)

      // More is visible, and another user may connect.
      let more = Self.policy.replacingOccurrences(of: "deny-read: [/secret", with: "deny-read: [/x")
      try await rereads(
        served, more + "\n  - users: [\(Self.nobody)]\n    connect: true\n", file)
      try await eventually("it sees all") { alice.was(told: "<secret>") }
      let nobody = try Peer(served, uid: Self.nobody)
      try await nobody.begin([])

      // Less is visible.
      let less = Self.policy.replacingOccurrences(of: "[/secret", with: "[/secret, /public")
      try await rereads(served, less, file)
      #expect(try await nobody.goodbye()?.code == .denied)
      try await eventually("one path is hidden") {
        alice.messages.contains { message in
          guard case .subscribed(let subscribed) = message else { return false }
          return subscribed.subscription == 1 && subscribed.continuation == .refused
        }
      }
      try await mirror.send(DocumentAction.set(["public"], "<later>"))
      try await mirror.send(DocumentAction.set(["open"], "<open>"))
      try await eventually("what it may see") { alice.was(told: "<open>") }
      #expect(!alice.was(told: "<later>"))
      #expect(mirror.status == .live && mirror.counters.snapshots == 1)
      mirror.connection.close()
    }
  }

  @Test func `a daemon does not start with a faulty policy`() async throws {
    try await withFolder { folder in
      let file = folder + "/policy.yaml"
      for (policy, line) in [
        (Self.policy + "\n    reed: [/]\n", ":"), ("version: 1\nrules: []\n", ":2"), ("", ""),
      ] {
        try write(policy, to: file)
        let daemon = try ChildProcess(
          Binaries.daemon, ["--socket", folder + "/socket", "--policy", file])
        #expect(try await daemon.end() == .exit(1))
        #expect(daemon.output.contains { $0.contains(file + line) }, "\(daemon.output)")
      }
    }
  }
}
