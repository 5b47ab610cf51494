import Documents
import Foundation
import Journal
import Lockstep
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// A daemon that runs out of disk or descriptors, or is flooded with signals, continues to serve,
/// says what is no longer durable, and recovers by itself.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(5)))
struct DiskTroubleTests {
  /// A client that sets members of the document, and records which are durable.
  private final class Setter {
    let replica: Subscription<Value>
    private(set) var durable: [String: Int64] = [:]
    private var count: Int64 = 0

    init(_ home: Home) async throws { replica = try await home.mirror(label: "setter") }

    /// Sets one more member. Returns the reason why it is not durable, or nil.
    func set(_ prefix: String = "k", padding: Int = 2000) async throws -> String? {
      count += 1
      let padding = Value.text(String(repeating: "x", count: padding))
      let action = DocumentAction.set(
        [.text("\(prefix)\(count)")], ["n": .integer(count), "p": padding])
      do {
        let acknowledgement = try await replica.send(action, .durable)
        guard acknowledgement.mark == .durable else {
          return acknowledgement.notDurable ?? "no reason"
        }
        durable["\(prefix)\(count)"] = count
        return nil
      } catch ClientError.rejected(let rejection) {
        #expect(rejection.code == Rejection.Code.notDurable.rawValue, "\(rejection)")
        return "rejected: \(rejection)"
      }
    }

    /// Sets members until one is not durable, and returns the reason.
    func setUntilTrouble() async throws -> String {
      for _ in 0..<20_000 {
        if let trouble = try await set() { return trouble }
      }
      throw ChildProcess.Failure(description: "everything was durable")
    }

    /// Sets members until one is durable again.
    func setUntilDurable() async throws {
      try await eventually("something is durable again", within: .seconds(120)) {
        try await set("again") == nil
      }
    }

    func check(_ root: Value?) {
      let lost = durable.filter { root?[$0.key]?["n"]?.number != $0.value }
      #expect(lost.isEmpty, "durable, and lost: \(lost)")
    }
  }

  // MARK: A full disk

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `with a full disk only durability is lost, and it returns when there is room`() async throws
  {
    try await withHome(onDiskOf: 3 << 20) { home, disk in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      for _ in 0..<20 { #expect(try await setter.set() == nil) }

      try disk.fill()
      let trouble = try await setter.setUntilTrouble()
      #expect(trouble.contains("database or disk is full"), "\(trouble)")
      #expect(trouble.contains("Make room"), "\(trouble)")
      // From now on actions are applied as before, and none is durable.
      let refusal = try await setter.set()
      #expect(refusal?.hasPrefix("rejected: nothing can be made durable at present") == true)
      let applied = try await setter.replica.send(DocumentAction.set(["applied"], 1))
      #expect(applied.outcome == .reduced)
      let refused = try await home.lockstep("set", "/x", "1", "--durable")
      #expect(refused.status == .exit(1))
      #expect(refused.lines.joined().contains("disk is full"), "\(refused.lines)")
      let status = try await setter.replica.connection.report("status")
      #expect(status["journal"]?.cell.contains("disk is full") == true, "\(status)")

      disk.makeRoom()
      try await setter.setUntilDurable()
      #expect(try await setter.replica.connection.report("status")["journal"] == "healthy")
      // Actions that were only applied have been flushed by now too.
      try await first.process.kill()
      let kept = try KeptDocument(home.state)
      setter.check(kept.root)
      #expect(kept.root["applied"] == 1)
      let second = try await home.start()
      #expect(second.digest == kept.digest)
      #expect(try await setter.set() == nil)
      try await second.stop()
      setter.replica.connection.close()
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `a daemon killed on a full disk loses nothing durable`() async throws {
    try await withHome(onDiskOf: 2 << 20) { home, disk in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      for _ in 0..<20 { #expect(try await setter.set() == nil) }
      try disk.fill()
      _ = try await setter.setUntilTrouble()
      try await first.process.kill()
      let second = try await home.start()
      defer { second.process.signal(SIGKILL) }
      #expect(
        second.process.output.contains {
          $0.contains("nothing is durable until it can be written again")
        })
      let mirror = try await home.mirror()
      setter.check(mirror.state)
      #expect(try await setter.set()?.contains("disk is full") == true)
      #expect(try await mirror.send(DocumentAction.set(["applied"], 1)).outcome == .reduced)
      disk.makeRoom()
      try await second.process.line(with: "changes are durable again")
      #expect(try await setter.set() == nil)
      mirror.connection.close()
      setter.replica.connection.close()
      try await second.process.kill()
      let kept = try KeptDocument(home.state)
      setter.check(kept.root)
      #expect(kept.root["applied"] == 1)
      let third = try await home.start()
      #expect(third.digest == kept.digest)
      try await third.stop()
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `a first start on a full disk serves, and keeps everything once there is room`()
    async throws
  {
    try await withHome(onDiskOf: 2 << 20) { home, disk in
      try disk.fill()
      let daemon = try await home.start()
      defer { daemon.process.signal(SIGKILL) }
      let mirror = try await home.mirror()
      #expect(try await mirror.send(DocumentAction.set(["applied"], 1)).outcome == .reduced)
      disk.makeRoom()
      try await daemon.process.line(with: "changes are durable again")
      #expect(try await mirror.send(DocumentAction.set(["n"], 2), .durable).mark == .durable)
      mirror.connection.close()
      try await daemon.process.kill()
      let next = try await home.start()
      #expect(next.epoch == daemon.epoch && next.run > daemon.run && next.revision == 2)
      #expect(try KeptDocument(home.state).root["applied"] == 1)
      try await next.stop()
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `revisions lost on a full disk are not confused with later ones`() async throws {
    try await withHome(onDiskOf: 2 << 20) { home, disk in
      let first = try await home.start()
      let setter = try await Setter(home)
      // Until the log has no spare space of its own either.
      for _ in 0..<20 { #expect(try await setter.set() == nil) }
      try await first.process.kill()
      try disk.fill()
      let second = try await home.start()
      try await eventually("it is back") { setter.replica.position?.run == second.run }
      for _ in 0..<5 { try await setter.replica.send(DocumentAction.increment(["n"], by: 1)) }
      try await second.process.kill()
      disk.makeRoom()
      // The journal has no record of the lost run, and the next run must still have another number.
      let third = try await home.start()
      #expect(third.run != second.run && third.revision == 20)
      try await eventually("it is back") { setter.replica.position?.run == third.run }
      for _ in 0..<7 {
        _ = try? await setter.replica.send(DocumentAction.increment(["other"], by: 1))
      }
      let (ours, theirs) = try await setter.replica.bothDigests()
      #expect(ours == theirs)
      #expect(
        setter.replica.connection.divergences == 0,
        "\(setter.replica.connection.lastDivergence ?? "")")
      try await third.stop()
      setter.replica.connection.close()
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `a stop right after a full disk does not claim revisions that were not kept`() async throws {
    try await withHome(onDiskOf: 2 << 20) { home, disk in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      try disk.fill()
      _ = try await setter.setUntilTrouble()
      for _ in 0..<10 { try await setter.replica.send(DocumentAction.increment(["n"], by: 1)) }
      // Stopped just when there is room: the journal is behind the clients, and must not claim
      // their revision.
      disk.makeRoom()
      first.process.signal(SIGTERM)
      _ = try await first.process.end()
      let kept = try KeptDocument(home.state)
      setter.check(kept.root)
      let second = try await home.start()
      #expect(second.digest == kept.digest)
      // The session was not kept: an action sent before the client knows would have an unknown
      // outcome.
      try await eventually("it is back") {
        setter.replica.status == .live && setter.replica.position?.run == second.run
      }
      let acknowledgement = try await setter.replica.send(DocumentAction.set(["after"], 1))
      try await setter.replica.reached(revision: acknowledgement.revision)
      let (ours, theirs) = try await setter.replica.bothDigests()
      #expect(ours == theirs)
      #expect(
        setter.replica.connection.divergences == 0,
        "\(setter.replica.connection.lastDivergence ?? "")")
      try await second.stop()
      setter.replica.connection.close()
    }
  }

  // MARK: A directory that goes

  @Test func `a state directory that vanishes suspends durability until it is back`() async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      #expect(try await setter.set() == nil)
      rename(home.state, home.state + ".away")
      let trouble = try await setter.setUntilTrouble()
      #expect(trouble.contains("journal.sqlite has vanished. Put it back"), "\(trouble)")
      #expect(try await setter.set()?.hasPrefix("rejected: ") == true)
      let applied = try await setter.replica.send(DocumentAction.set(["applied"], 1))
      #expect(applied.outcome == .reduced)
      rename(home.state + ".away", home.state)
      try await setter.setUntilDurable()
      try await first.process.kill()
      let second = try await home.start()
      let mirror = try await home.mirror()
      setter.check(mirror.state)
      #expect(mirror.value("/applied") == 1)
      try await second.stop()
      setter.replica.connection.close()
    }
  }

  @Test func `a write-ahead log that is removed is detected, and replaced`() async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      for _ in 0..<5 { #expect(try await setter.set() == nil) }
      unlink(home.journal + "-wal")
      let trouble = try await setter.setUntilTrouble()
      #expect(trouble.contains("journal.sqlite-wal has vanished"), "\(trouble)")
      try await setter.setUntilDurable()
      try await first.process.kill()
      setter.check(try KeptDocument(home.state).root)
      setter.replica.connection.close()
    }
  }

  @Test(arguments: [0, 100, 20_000])
  func `a write-ahead log truncated in place is detected by the next action`(
    length: Int
  ) async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      // Each too large for the commit log, from which it would come to the write-ahead log later.
      for _ in 0..<20 { #expect(try await setter.set(padding: 100_000) == nil) }
      #expect(truncate(home.journal + "-wal", off_t(length)) == 0)
      let trouble = try #require(try await setter.set(), "it was durable in a log with a hole")
      #expect(trouble.contains("another program has cut it or written over it"), "\(trouble)")
      try await setter.setUntilDurable()
      try await first.process.kill()
      setter.check(try KeptDocument(home.state).root)
      let second = try await home.start()
      try await second.stop()
      setter.replica.connection.close()
    }
  }

  @Test func `a daemon survives the removal of its directory, and the next one starts empty`()
    async throws
  {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let setter = try await Setter(home)
      #expect(try await setter.set() == nil)
      try FileManager.default.removeItem(atPath: home.state)
      _ = try await setter.setUntilTrouble()
      // A new directory at the path does not replace the old one.
      try Files.makeFolder(home.state)
      #expect(try await setter.set() != nil)
      try await setter.replica.send(DocumentAction.set(["applied"], 1))
      first.process.signal(SIGTERM)
      #expect(try await first.process.end() == .exit(0))
      #expect(Files.read(home.journal) == [])
      let second = try await home.start()
      #expect(second.epoch != first.epoch)
      #expect(second.revision == 0)
      try await second.stop()
      setter.replica.connection.close()
    }
  }

  // MARK: Signals and descriptors

  @Test func `a storm of signals stops a daemon in order, and loses nothing`() async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let writers = (1...2).map { RawWriter("w\($0)", home, seed: UInt64($0)) }
      try await eventually("they write") { writers.allSatisfy { $0.book.durableCount > 50 } }
      for number in 0..<1000 { first.process.signal(number % 10 == 9 ? SIGTERM : SIGHUP) }
      #expect(try await first.process.end() == .exit(0), "\(first.process.output.suffix(5))")
      #expect(first.process.output.contains { $0.contains("stopped") })
      let books = writers.map { ($0.book, $0.book.now) }
      let kept = try KeptDocument(home.state)
      #expect(books.flatMap { $0.0.complaints(kept.root, asOf: $0.1) } == [])
      let second = try await home.start()
      #expect(second.digest == kept.digest)
      for writer in writers { try await writer.end() }
      let mirror = try await home.mirror()
      #expect(writers.flatMap { $0.book.complaints(mirror.state, isWhole: true) } == [])
      try await second.stop()
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `recovery completes or changes nothing, however little room there is`() async throws {
    try await withHome(onDiskOf: 16 << 20) { home, disk in
      let daemon = try await home.start()
      let setter = try await Setter(home)
      for _ in 0..<200 { #expect(try await setter.set() == nil) }
      setter.replica.connection.close()
      try await daemon.stop()
      let before = Files.read(home.journal)
      var (refused, done) = (0, 0)
      for room in stride(from: 0, through: 2 << 20, by: 64 << 10) {
        try disk.fill(butFor: room)
        do {
          let recovery = try JournalFile.recover(directory: home.state, to: 150)
          done += 1
          #expect(recovery.revision == 150)
          #expect(JournalReader.fsck(home.journal).findings == [], "\(room)")
          disk.makeRoom()
          try FileManager.default.removeItem(atPath: recovery.backup)
          Files.write(before, to: home.journal)
        } catch {
          refused += 1
          #expect(Files.read(home.journal) == before, "\(room): \(error)")
        }
        disk.makeRoom()
      }
      #expect(refused > 3 && done > 3, "\(refused) refused, \(done) done")
    }
  }

  @Test func `a daemon that runs out of descriptors before its first client still serves`()
    async throws
  {
    try await withHome { home in
      let daemon = try ChildProcess(
        "/bin/sh",
        [
          "-c", "ulimit -n 64; exec \"$0\" \"$@\"", Binaries.daemon, "--socket", home.socket,
          // The crowd says nothing, and is not to be sent away for that.
          "--limit", "helloDeadlineMs=600000",
        ])
      defer { daemon.signal(SIGKILL) }
      try await daemon.line(with: "fewer descriptors than connections")
      try await daemon.line(with: " serving ")
      let served = Served(folder: home.folder, socket: home.socket, daemon: daemon)
      var crowd = try (0..<90).map { _ in try served.raw() }
      try await daemon.line(with: "too many open files")
      // The snapshot is encoded off the loop, which makes the first use of the global pool.
      let first = crowd[0]
      _ = try first.greet()
      try first.send(.subscribe(subscription: 1, .root, nil))
      var hasSnapshot = false
      while !hasSnapshot, let message = try first.receive() {
        if case .snapshot = message { hasSnapshot = true }
      }
      #expect(hasSnapshot)
      for client in crowd { client.close() }
      crowd = []
      let mirror = try await home.mirror()
      try await mirror.send(DocumentAction.set(["n"], 1))
      mirror.connection.close()
    }
  }

  @Test func `a daemon without descriptors lets new clients wait, and stays durable`() async throws
  {
    try await withHome { home in
      let daemon = try ChildProcess(
        "/bin/sh",
        [
          "-c", "ulimit -n 64; exec \"$0\" \"$@\"", Binaries.daemon, "--socket", home.socket,
          // The crowd says nothing, and is not to be sent away for that.
          "--limit", "helloDeadlineMs=600000",
          "--state-dir", home.state,
        ])
      defer { daemon.signal(SIGKILL) }
      try await daemon.line(with: " serving ")
      let setter = try await Setter(home)
      let served = Served(folder: home.folder, socket: home.socket, daemon: daemon)
      var crowd = try (0..<90).map { _ in try served.raw() }
      try await daemon.line(with: "too many open files")
      #expect(try await setter.set() == nil)
      async let late = blocking { try served.raw().greet().isResumed }
      // As connections close, the waiting clients are served in their order.
      for client in crowd { client.close() }
      crowd = []
      #expect(try await !late)
      #expect(try await setter.set() == nil)
      // Logged once when it begins, not at every attempt.
      #expect(daemon.output.count { $0.contains("too many open files") } < 100)
      try await daemon.kill()
      setter.check(try KeptDocument(home.state).root)
      setter.replica.connection.close()
    }
  }
}

extension Value {
  fileprivate var cell: String { if case .text(let text) = self { text } else { "\(self)" } }
}
