import CBOR
import Documents
import Foundation
import Glibc
import Lockstep
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// A daemon under a memory limit, and a client that lets its state grow for ever: the client is
/// rejected, and no other client is affected.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(5)), .serialized)
struct MemoryLimitTests {
  /// The mechanism of the limit.
  enum Kind: CaseIterable, Sendable {
    case controlGroup, data, addressSpace
  }

  /// A control group for one test, whose limit makes the kernel kill.
  private struct Group {
    static let parent = "/sys/fs/cgroup/memory"
    static let isAllowed = access(parent + "/memory.limit_in_bytes", W_OK) == 0
    let path: String

    init(bytes: Int) throws {
      path = Self.parent + "/lockstep-test-\(getpid())-\(UInt32.random(in: 0...9999))"
      try #require(mkdir(path, 0o700) == 0)
      try Self.write("\(bytes)", to: path + "/memory.limit_in_bytes")
      // Without swap, on machines that have some and count it.
      try? Self.write("\(bytes)", to: path + "/memory.memsw.limit_in_bytes")
    }

    private static func write(_ text: String, to file: String) throws {
      let descriptor = open(file, O_WRONLY | O_CLOEXEC)
      defer { close(descriptor) }
      try #require(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count, "\(file)")
    }

    func remove() async throws {
      try await eventually("the group is empty") { rmdir(path) == 0 || errno == ENOENT }
    }
  }

  private static let limit = 150 << 20
  private static let programSpace = 180 << 20

  /// Run a test with a daemon under a limit, which goes on from what an unlimited one has kept.
  private func withDaemon(
    _ kind: Kind, after before: @Sendable (Home) async throws -> Void = { _ in },
    _ body: @escaping @Sendable (Home) async throws -> Void
  ) async throws {
    try await withHome { home in
      try await before(home)
      let group = kind == .controlGroup ? try Group(bytes: Self.limit) : nil
      let command =
        switch kind {
        case .controlGroup: "echo $$ >\(group?.path ?? "")/cgroup.procs"
        case .data: "ulimit -d \(Self.limit >> 10)"
        // On top of the address space that the program, its libraries and its stacks take.
        case .addressSpace: "ulimit -v \((Self.limit + Self.programSpace) >> 10)"
        }
      let daemon = try ChildProcess(
        "/bin/sh",
        [
          "-c", "\(command); exec \"$0\" \"$@\"", Binaries.daemon, "--socket", home.socket,
          "--state-dir", home.state, "--limit", "journalAgeMs=500",
        ])
      do {
        try await daemon.line(with: " serving ")
        if kind == .addressSpace {
          // What the allocator reserves is taken from work that has been granted it.
          let mapped = daemon.mappedBytes
          #expect(mapped > 0 && mapped < Self.programSpace, "\(mapped)")
        }
        // If the kernel kills it, that is said at once.
        try await daemon.during { try await body(home) }
        try await daemon.kill()
        try await group?.remove()
      } catch {
        daemon.signal(SIGKILL)
        try await group?.remove()
        throw error
      }
    }
  }

  /// Sends actions until one is rejected for its size. Returns how many succeeded, and the
  /// rejection.
  private func grow(
    _ replica: Subscription<Value>, _ limit: Int, _ action: (Int) -> DocumentAction
  ) async throws -> (done: Int, rejection: String) {
    for number in 0..<limit {
      do {
        try await replica.send(action(number))
      } catch ClientError.rejected(let rejection) {
        #expect(rejection.code == Rejection.Code.limit.rawValue, "\(rejection)")
        return (number, rejection.message)
      }
    }
    throw ChildProcess.Failure(description: "nothing was rejected")
  }

  /// Actions that fill the memory: some large texts, many small members, arrays of small numbers.
  static let fillings: [(name: String, action: @Sendable (Int) -> DocumentAction)] = [
    (
      "texts",
      { .set(["flood", .text("\($0)")], .text(String(repeating: "x", count: 200_000))) }
    ),
    (
      "members",
      { number in
        .set(
          ["flood", .text("\(number)")],
          .object(
            TrieMap(
              uniqueKeysWithValues: (0..<500).map { ("member\($0)", Value.integer(Int64($0))) })))
      }
    ),
    (
      "numbers",
      {
        .set(
          ["flood", .text("\($0)")], .array(TreeArray(repeatElement(.integer(1), count: 20_000))))
      }
    ),
  ]

  @Test(
    .enabled(if: Group.isAllowed, "a control group of version 1 cannot be made here"),
    arguments: fillings.indices)
  func `a client that fills a control group is rejected, and others go on`(filling: Int)
    async throws
  {
    try await check(.controlGroup, Self.fillings[filling].action, words: "memory.limit_in_bytes")
  }

  @Test(arguments: [Kind.data, .addressSpace])
  func `a client that fills the process's limit is rejected, and others go on`(kind: Kind)
    async throws
  {
    try await check(
      kind, Self.fillings[0].action, words: kind == .data ? "process's data" : "address space")
  }

  /// Removes the added members. The daemon knows the free memory only after its next measurement.
  private func empty(
    _ flooder: Subscription<Value>, _ action: (Int) -> DocumentAction
  ) async throws {
    try await flooder.send(DocumentAction.remove(["flood"]))
    for action in [.set(["flood"], [:]), action(0)] {
      try await eventually("there is room for one", within: .seconds(30)) {
        do {
          try await flooder.send(action)
          return true
        } catch ClientError.rejected {
          return false
        }
      }
    }
  }

  private func check(
    _ kind: Kind, _ action: @escaping @Sendable (Int) -> DocumentAction, words: String
  ) async throws {
    try await withDaemon(kind) { home in
      let other = try await home.mirror(of: ["small"])
      try await other.send(DocumentAction.set(["small"], 0))
      try await other.send(DocumentAction.set(["flood"], [:]))
      let flooder = try await home.mirror(of: ["small"])
      // Another client sends actions the whole time.
      let work = Task {
        var count = 0
        do {
          while true {
            try await other.send(DocumentAction.increment(["small"], by: 1))
            count += 1
          }
        } catch is CancellationError {
          return count
        }
      }
      defer { work.cancel() }
      for round in 1...3 {
        let (done, rejection) = try await grow(flooder, 100_000, action)
        #expect(rejection.contains(words), "\(rejection)")
        if round == 1 { #expect(done > 20, "\(done)") }
        // The flooder continues, and a mirror of the root is made or refused: the daemon is not
        // killed.
        for number in 0..<20 { _ = try? await flooder.send(action(done + number)) }
        do {
          let mirror = try await home.mirror()
          let (revision, _) = try await mirror.nextDaemonDigest()
          try await mirror.reached(revision: revision)
          mirror.connection.close()
        } catch ClientError.refused(.memory) {
          // The daemon reported the reason.
        }
        // The removal makes room for as much again.
        try await empty(flooder, action)
        try await eventually("as much can be added again", within: .seconds(30)) {
          for number in 0..<(done / 2) {
            do {
              try await flooder.send(action(number))
            } catch ClientError.rejected {
              try await empty(flooder, action)
              return false
            }
          }
          return true
        }
        try await empty(flooder, action)
      }
      work.cancel()
      #expect(try await work.value > 100)
      flooder.connection.close()
      other.connection.close()
    }
  }

  /// What is free between them is too small for blocks of other sizes.
  @Test(arguments: [Kind.data, .addressSpace])
  func `holes between larger values do not count as room for small ones`(kind: Kind) async throws {
    try await withDaemon(kind) { home in
      let client = try await home.mirror(of: ["small"])
      try await client.send(DocumentAction.set(["flood"], [:]))
      let text = Value.text(String(repeating: "x", count: 16_200))
      let (done, _) = try await grow(client, 100_000) { .set(["flood", .text("\($0)")], text) }
      #expect(done > 500, "\(done)")
      for number in stride(from: 0, to: done, by: 2) {
        try await client.send(DocumentAction.remove(["flood", .text("\(number)")]))
      }
      // What is free is measured once a second.
      try await eventually("something can be added again", within: .seconds(20)) {
        (try? await client.send(DocumentAction.set(["members"], [:]))) != nil
      }
      for _ in 0..<3 {
        let (_, rejection) = try await grow(client, 100_000) { number in
          .set(
            ["members", .text("\(number)")],
            .object(
              TrieMap(
                uniqueKeysWithValues: (0..<100).map { ("member\($0)", Value.integer(Int64($0))) })))
        }
        #expect(rejection.contains("process"), "\(rejection)")
      }
      client.connection.close()
    }
  }

  /// It measures its state a second later. Each part is a snapshot of its own, of nearly all there is.
  @Test(arguments: [Kind.data, .addressSpace])
  func `a large state that was read leaves room for clients that come at once`(kind: Kind)
    async throws
  {
    try await withDaemon(kind) { home in
      let first = try await home.start()
      let client = try await home.mirror(of: ["small"])
      try await client.send(DocumentAction.set(["a"], ["b": ["c": [:]]]))
      let text = Value.text(String(repeating: "x", count: 200_000))
      for number in 0..<80 {
        try await client.send(DocumentAction.set(["a", "b", "c", .text("\(number)")], text))
      }
      client.connection.close()
      first.process.signal(SIGTERM)
      #expect(try await first.process.end() == .exit(0))
    } _: { home in
      let paths: [Path] = [.root, ["a"], ["a", "b"], ["a", "b", "c"]]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for path in paths {
          group.addTask {
            // While a former one is still being sent there may not be the memory for the next.
            try await eventually("there is memory for a snapshot", within: .seconds(30)) {
              do {
                let mirror = try await home.mirror(of: path)
                let (ours, theirs) = try await mirror.bothDigests()
                #expect(ours == theirs)
                mirror.connection.close()
                return true
              } catch ClientError.refused(.memory) {
                return false
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test(.enabled(if: Group.isAllowed, "a control group of version 1 cannot be made here"))
  func `many small members cannot fill a control group either`() async throws {
    try await withDaemon(.controlGroup) { home in
      let other = try await home.mirror(of: ["small"])
      try await other.send(DocumentAction.set(["small"], 0))
      // As many at a time as the window admits, without waiting for answers.
      try await other.send(DocumentAction.set(["flood"], [:]))
      let flood = try await blocking { try MemberFlood(socket: home.socket).run() }
      #expect(flood.rejected > 0 && flood.done > 100_000, "\(flood)")
      for _ in 0..<100 { try await other.send(DocumentAction.increment(["small"], by: 1)) }
      try await other.send(DocumentAction.remove(["flood"]))
      try await eventually("something can be added again", within: .seconds(20)) {
        (try? await other.send(
          DocumentAction.set(["new"], .text(String(repeating: "x", count: 5000)))))
          != nil
      }
      other.connection.close()
    }
  }
}

/// Adds small members to an object, one window of actions at a time, until many are rejected.
private struct MemberFlood {
  private let client: RawClient

  init(socket: String) throws {
    client = try RawClient(path: socket)
    try client.greet(label: "flood")
  }

  func run() throws -> (done: UInt64, rejected: UInt64) {
    var (number, done, rejected): (UInt64, UInt64, UInt64) = (0, 0, 0)
    while rejected < 20_000, number < 10_000_000 {
      var bytes: [UInt8] = []
      for _ in 0..<4000 {
        number += 1
        var payload = CBOREncoder()
        DocumentAction.set(["flood", .text("\(number)")], 1).encode(into: &payload)
        bytes += Frame.encode {
          ClientMessage.action(number: number, .applied, payload: payload.bytes).encode(into: &$0)
        }
      }
      try client.send(bytes)
      for answer in try client.acknowledgements(through: number) {
        let count = answer.last - answer.first + 1
        if case .rejected = answer.outcome { rejected += count } else { done += count }
      }
    }
    client.close()
    return (done, rejected)
  }
}
