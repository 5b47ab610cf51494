import Documents
import Foundation
import LockstepClient
import Testing
import Values
import Wire

/// A write-ahead log that is damaged, truncated or missing when a daemon starts. Everything durable
/// is restored, or the start is refused with advice. Rows are never lost silently.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(5)))
struct LostLogProcessTests {
  /// The files of a killed daemon, whose actions were all durable.
  private struct Remains {
    let home: Home
    let copy: String
    let revision: UInt64
    let digest: String
    var log: [UInt8] { Files.read(copy + "/journal.sqlite-wal") }

    /// Restores the files with this log; nil for none.
    func restore(log: [UInt8]?) throws {
      try FileManager.default.removeItem(atPath: home.state)
      try FileManager.default.copyItem(atPath: copy, toPath: home.state)
      if let log {
        Files.write(log, to: home.journal + "-wal")
      } else {
        unlink(home.journal + "-wal")
      }
    }
  }

  /// The files of a daemon killed after `actions` durable actions, in a journal with a checkpoint,
  /// or without one if it is young. Each third is too large for the commit log.
  private func withRemains(
    actions: Int64, isYoung: Bool, _ body: (Remains) async throws -> Void
  ) async throws {
    try await withHome { home in
      if !isYoung {
        let daemon = try await home.start()
        let mirror = try await home.mirror()
        for number in 1...20 as ClosedRange<Int64> {
          try await mirror.send(DocumentAction.set(["before"], .integer(number)), .durable)
        }
        mirror.connection.close()
        try await daemon.stop()
      }
      let daemon = try await home.start()
      let mirror = try await home.mirror()
      for number in 1...actions {
        let set = try await mirror.send(
          DocumentAction.set(
            [.text("k\(number % 7)")], number % 3 == 0 ? large(number) : .integer(number)), .durable
        )
        #expect(set.mark == .durable)
      }
      let (revision, digest) = try await mirror.nextDaemonDigest()
      mirror.connection.close()
      try await daemon.process.kill()
      let copy = home.state + ".copy"
      try FileManager.default.copyItem(atPath: home.state, toPath: copy)
      try await body(
        Remains(home: home, copy: copy, revision: revision, digest: digest.description))
    }
  }

  private func large(_ number: Int64) -> Value {
    .text(String(repeating: "\(number % 10)", count: 20_000))
  }

  private enum Outcome { case whole, refused }

  /// Starts a daemon on the files, twice if it refuses: a refusal must not make it worse.
  private func outcome(_ remains: Remains, _ comment: String) async throws -> Outcome {
    let process = try remains.home.spawn()
    defer { process.signal(SIGKILL) }
    if let line = try? await process.line(with: " serving ") {
      let daemon = try #require(RunningDaemon(process, line))
      #expect(daemon.revision == remains.revision, "\(comment): silently less")
      #expect(daemon.digest == remains.digest, "\(comment)")
      try await daemon.stop()
      return .whole
    }
    #expect(try await process.end() == .exit(1), "\(comment)")
    let said = process.output.last ?? ""
    #expect(said.contains("journal.sqlite"), "\(comment): \(said)")
    #expect(said.contains("--recover-to") || said.contains("move them away"), "\(comment): \(said)")
    let checked = try await remains.home.lockstep("fsck", remains.home.state)
    #expect(checked.status == .exit(11), "\(comment): \(checked.lines)")
    let again = try await remains.home.refusal()
    #expect(again.dropFirst(20) == said.dropFirst(20), "\(comment): behind the time, the same")
    return .refused
  }

  @Test(arguments: [false, true])
  func `a log that lost its beginning is repaired or refused`(isYoung: Bool) async throws {
    try await withRemains(actions: 60, isYoung: isYoung) { remains in
      let log = remains.log
      let damages: [(String, [UInt8]?)] = [
        ("512 zeros", [UInt8](repeating: 0, count: 512) + log.dropFirst(512)),
        ("no head", [UInt8](repeating: 0, count: 32) + log.dropFirst(32)),
        (
          "a bit of the head",
          log.enumerated().map { $0.offset == 20 ? $0.element ^ 4 : $0.element }
        ),
        ("a zero page", [UInt8](repeating: 0, count: 4096) + log.dropFirst(4096)),
        ("all zero", [UInt8](repeating: 0, count: log.count)), ("empty", []), ("missing", nil),
      ]
      var outcomes: [String: Outcome] = [:]
      for (name, log) in damages {
        try remains.restore(log: log)
        outcomes[name] = try await outcome(remains, name)
      }
      #expect(outcomes["no head"] == .whole && outcomes["a bit of the head"] == .whole)
      for name in ["all zero", "empty", "missing"] {
        #expect(outcomes[name] == .refused, "\(name)")
      }
    }
  }

  @Test func `a log truncated at any frame is refused`() async throws {
    try await withRemains(actions: 12, isYoung: true) { remains in
      let log = remains.log
      for length in stride(from: 32, to: log.count, by: 24 + 4096) {
        try remains.restore(log: Array(log.prefix(length)))
        #expect(try await outcome(remains, "\(length) of \(log.count)") == .refused)
      }
      try remains.restore(log: log)
      #expect(try await outcome(remains, "the whole log") == .whole)
    }
  }

  @Test func `a recovery to the offered revision gives up the rest, and the daemon serves`()
    async throws
  {
    try await withRemains(actions: 30, isYoung: false) { remains in
      try remains.restore(log: nil)
      let refusal = try await remains.home.refusal()
      let advice = try #require(refusal.split(separator: "`").first { $0.contains("--recover-to") })
      let revision = try #require(advice.split(separator: " ").last.map(String.init))
      let daemon = try await remains.home.start(["--recover-to", revision])
      #expect(String(daemon.revision) == revision)
      try await daemon.stop()
      try await remains.home.start().stop()
    }
  }

  @Test func `a repaired log is reported, and the damaged one is kept`() async throws {
    try await withRemains(actions: 30, isYoung: false) { remains in
      let damaged = [UInt8](repeating: 0, count: 32) + remains.log.dropFirst(32)
      try remains.restore(log: Array(damaged))
      let checked = try await remains.home.lockstep("fsck", remains.home.state)
      #expect(checked.status == .exit(11), "\(checked.lines)")
      #expect(checked.lines.joined().contains("Start the daemon"), "\(checked.lines)")
      let daemon = try await remains.home.start()
      #expect(daemon.process.output.contains { $0.contains("frames were brought back") })
      #expect(Files.read(remains.home.journal + "-wal.damaged") == Array(damaged))
      try await daemon.stop()
      let after = try await remains.home.lockstep("fsck", remains.home.state)
      #expect(after.status == .exit(0), "\(after.lines)")
    }
  }
}
