import Documents
import Foundation
import LockstepClient
import Testing
import Values
import Wire

/// A state directory that a daemon cannot use: the error says what is wrong and what to do. The
/// daemon never starts with data other than what was kept.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(5)))
struct StateDirectoryTests {
  /// A condition of the directory.
  struct Trouble: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Parts of the error.
    let says: [String]
    /// Creates the condition in a home that has no state directory yet.
    let prepare: @Sendable (inout Home) throws -> Void

    init(
      _ name: String, says: String..., prepare: @escaping @Sendable (inout Home) throws -> Void
    ) {
      (testDescription, self.says, self.prepare) = (name, says, prepare)
    }
  }

  static let troubles = [
    Trouble("its parent is missing", says: "/none/state: the directory cannot be made", "No such") {
      $0.state = $0.folder + "/none/state"
    },
    Trouble("it is a file", says: "/state: not a directory. Name the directory") {
      Files.write([1, 2, 3], to: $0.state)
    },
    Trouble("it is a socket's folder that everybody may write to", says: "everybody may write") {
      mkdir($0.state, 0o777)
      chmod($0.state, 0o777)
    },
    Trouble("its journal is a folder", says: "not an ordinary file") {
      try Files.makeFolder($0.journal)
    },
    Trouble("its journal is a link", says: "a symbolic link, which a journal must not be") {
      try Files.makeFolder($0.state)
      symlink("/dev/null", $0.journal)
    },
    Trouble("its journal is a text", says: "file is not a database", "Move the file away") {
      try Files.makeFolder($0.state)
      Files.write(Array("To do: eat, sleep, repeat. Every day.\n".utf8), to: $0.journal)
    },
    Trouble("its journal is empty", says: "not a journal. Move it away") {
      try Files.makeFolder($0.state)
      Files.write([], to: $0.journal)
    },
  ]

  @Test(arguments: troubles)
  func `an unusable directory is refused`(trouble: Trouble) async throws {
    try await withHome { home in
      var home = home
      try trouble.prepare(&home)
      let before = Files.read(home.journal)
      let refusal = try await home.refusal()
      for words in trouble.says { #expect(refusal.contains(words), "\(refusal)") }
      #expect(Files.read(home.journal) == before, "nothing is written")
      #expect(!FileManager.default.fileExists(atPath: home.socket), "nobody is served")
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `a file system that cannot be written to is refused`() async throws {
    try await withHome(onDiskOf: 4 << 20) { home, disk in
      try await home.start().stop()
      try disk.remount(isReadOnly: true)
      let refusal = try await home.refusal()
      #expect(refusal.contains("/state/lock: the lock cannot be opened"), "\(refusal)")
      #expect(refusal.contains("Read-only file system"), "\(refusal)")
      var elsewhere = home
      elsewhere.state = disk.path + "/other"
      let other = try await elsewhere.refusal()
      #expect(other.contains("/other: the directory cannot be made"), "\(other)")
    }
  }

  @Test func `a directory in use by another daemon is refused, with its process`() async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      var second = home
      second.socket = home.folder + "/other"
      let refusal = try await second.refusal()
      #expect(
        refusal.contains("/state/lock: process \(first.process.pid) has the journal. Stop it"),
        "\(refusal)")
      try await first.stop()
    }
  }

  // MARK: Journals

  /// A journal with sixty changes and three sessions, and no running daemon.
  private func withJournal(_ body: (Home, Begun) async throws -> Void) async throws {
    try await withHome { home in
      let daemon = try await home.start()
      for name in ["a", "b", "c"] {
        let mirror = try await home.mirror(label: name)
        for number in 1...20 {
          let value: Value = ["text": .text(String(repeating: "x", count: 8 * number))]
          try await mirror.send(DocumentAction.set([.text("\(name)\(number)")], value))
        }
        mirror.connection.close()
      }
      try await daemon.stop()
      let kept = try KeptDocument(home.state)
      try await body(
        home, Begun(epoch: daemon.epoch, kept: kept, bytes: Files.read(home.journal)))
    }
  }

  private struct Begun {
    let epoch: String
    let kept: KeptDocument
    let bytes: [UInt8]
  }

  static let foreign: [(name: String, offset: Int, bytes: [UInt8], says: String)] = [
    ("a database of another program", 68, [0, 0, 0, 1], "a database of SQLite, and not a journal"),
    ("a journal of a newer version", 60, [0, 0, 0, 9], "written by a newer version (format 9"),
    ("a journal of a version that never was", 60, [0, 0, 0, 0], "not as a journal is laid out"),
  ]

  @Test func `a missing journal is reported, and not silently begun anew`() async throws {
    try await withHome { home in
      try await home.start().stop()
      for name in ["", "-wal", "-shm"] { unlink(home.state + "/journal.sqlite" + name) }
      let second = try await home.start()
      let said = second.process.output.joined(separator: "\n")
      #expect(said.contains("the journal that was kept here is gone"), "\(said)")
      try await second.stop()
    }
  }

  @Test func `a start that cannot serve leaves no trace in the journal`() async throws {
    try await withHome { home in
      var astray = home
      astray.socket = home.folder + "/none/socket"
      let missing = try await astray.refusal()
      #expect(missing.contains("Make its directory"), "\(missing)")
      #expect(!FileManager.default.fileExists(atPath: home.state))
      Files.write([1], to: home.socket)
      let taken = try await home.refusal()
      #expect(taken.contains("is not a socket"), "\(taken)")
      #expect(!FileManager.default.fileExists(atPath: home.socket + ".lock"))
    }
  }

  @Test func `the initial document is needed only at the first start`() async throws {
    try await withHome { home in
      let file = home.folder + "/begin.json"
      let missing = try await home.refusal(["--load", file])
      #expect(missing.contains(file), "\(missing)")
      #expect(!FileManager.default.fileExists(atPath: home.state))
      Files.write(Array(#"{"n":1}"#.utf8), to: file)
      let first = try await home.start(["--load", file])
      let mirror = try await home.mirror()
      try await mirror.send(DocumentAction.set(["n"], 2), .durable)
      mirror.connection.close()
      try await first.stop()
      try FileManager.default.removeItem(atPath: file)
      let second = try await home.start(["--load", file])
      #expect(try KeptDocument(home.state).root["n"] == 2)
      try await second.stop()
    }
  }

  @Test func `a file that is no journal of this version is refused, and unchanged`() async throws {
    try await withJournal { home, begun in
      for (name, offset, bytes, says) in Self.foreign {
        var changed = begun.bytes
        changed.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        Files.write(changed, to: home.journal)
        let refusal = try await home.refusal()
        #expect(refusal.contains(says), "\(name): \(refusal)")
        #expect(Files.read(home.journal) == changed, "\(name)")
        let checked = try await home.lockstep("fsck", home.state)
        #expect(checked.status != .exit(0), "\(name)")
        #expect(checked.lines.joined().contains(says), "\(name): \(checked.lines)")
      }
    }
  }

  @Test func `a truncated journal is refused`() async throws {
    try await withJournal { home, begun in
      let size = begun.bytes.count
      for length in [100, 4096, size / 2, size - 8192, size - 4096, size - 1] {
        Files.write(Array(begun.bytes[..<length]), to: home.journal)
        // The last byte may be one that nothing is stored in, as `a flipped bit` may.
        if length == size - 1 {
          let process = try home.spawn()
          defer { process.signal(SIGKILL) }
          if let line = try? await process.line(with: " serving ") {
            #expect(try #require(RunningDaemon(process, line)).digest == begun.kept.digest)
            continue
          }
          #expect(try await process.end() == .exit(1))
        }
        let refusal = try await home.refusal()
        #expect(refusal.contains(home.journal), "\(length) of \(size): \(refusal)")
        #expect(refusal.contains("lockstep fsck"), "\(length) of \(size): \(refusal)")
        let checked = try await home.lockstep("fsck", home.state)
        #expect(checked.status == .exit(11), "\(length) of \(size): \(checked.lines)")
      }
    }
  }

  /// Bits in the header of every page, where SQLite keeps its number of rows, and elsewhere.
  private static func bits(of count: Int) -> [(offset: Int, bit: UInt8)] {
    var random = SplitMix64(7)
    let pages = 0..<(count / 4096)
    let heads = pages.flatMap { page -> [(offset: Int, bit: UInt8)] in
      let head = page * 4096 + (page == 0 ? 100 : 0)
      return [(head + 4, 1), (head + 4, 2)]
    }
    let others = (0..<20).map { _ -> (offset: Int, bit: UInt8) in
      (Int.random(in: 0..<count, using: &random), 1 << UInt8.random(in: 0..<8, using: &random))
    }
    return heads + others
  }

  @Test func `a flipped bit is found, or harmless`() async throws {
    try await withJournal { home, begun in
      var refused = 0
      for (offset, bit) in Self.bits(of: begun.bytes.count) {
        var changed = begun.bytes
        changed[offset] ^= bit
        try FileManager.default.removeItem(atPath: home.state)
        try Files.makeFolder(home.state)
        Files.write(changed, to: home.journal)
        let process = try home.spawn()
        defer { process.signal(SIGKILL) }
        let line = try? await process.line(with: " serving ")
        guard let line else {
          refused += 1
          #expect(try await process.end() == .exit(1), "\(offset) \(bit): \(process.output)")
          let said = process.output.joined(separator: " ")
          #expect(said.contains(home.journal), "\(offset) \(bit): \(said)")
          continue
        }
        let daemon = try #require(RunningDaemon(process, line))
        #expect(daemon.digest == begun.kept.digest, "bit \(bit) of byte \(offset)")
        #expect(daemon.revision == begun.kept.revision, "bit \(bit) of byte \(offset)")
        #expect(daemon.epoch == begun.epoch, "bit \(bit) of byte \(offset)")
        #expect(daemon.run == 2, "bit \(bit) of byte \(offset)")
        try await process.kill()
      }
      #expect(refused > 20)
    }
  }

  @Test func `a write-ahead log with a hole is refused`() async throws {
    try await withHome { home in
      let first = try await home.start()
      let mirror = try await home.mirror()
      // Too large for the commit log.
      for number in 1...12 {
        let text = Value.text(String(repeating: "\(number % 10)", count: 20_000))
        try await mirror.send(DocumentAction.set(["n"], text), .durable)
      }
      mirror.connection.close()
      try await first.process.kill()
      let whole = Files.read(home.journal + "-wal")
      let copy = home.state + ".copy"
      try FileManager.default.copyItem(atPath: home.state, toPath: copy)
      // Once in a page, and once in a checksum.
      for offset in [whole.count / 2, 32 + 4120 * 20 + 17] {
        var log = whole
        log[offset] ^= 4
        try FileManager.default.removeItem(atPath: home.state)
        try FileManager.default.copyItem(atPath: copy, toPath: home.state)
        Files.write(log, to: home.journal + "-wal")
        let process = try home.spawn()
        #expect(try await process.end() == .exit(1), "byte \(offset)")
        let said = process.output.last ?? ""
        #expect(said.contains("journal.sqlite-wal: damaged: frame"), "byte \(offset): \(said)")
        #expect(said.contains("from a backup"), "byte \(offset): \(said)")
      }
    }
  }

  @Test func `a commit log without the end of its last commit is no damage`() async throws {
    // A daemon that is not killed in time has moved the commit to the journal.
    for attempt in 1...50 {
      let revision = try await withHome { home in
        let first = try await home.start()
        let mirror = try await home.mirror()
        var mark: [UInt8] = []
        for number in 1...40 as ClosedRange<Int64> {
          mark = Files.read(home.state + "/standing")
          try await mirror.send(DocumentAction.set(["n"], .integer(number)), .durable)
        }
        try await first.process.kill()
        mirror.connection.close()
        // As after a crash of the machine: the end of the last commit, which was not acknowledged as
        // durable, has not come to the disk.
        var log = Files.read(home.journal + "-commits")
        let end = try #require(log.lastIndex { $0 != 0 })
        for index in end - 3...end { log[index] = 0 }
        Files.write(log, to: home.journal + "-commits")
        Files.write(mark, to: home.state + "/standing")
        let second = try await home.start()
        try await second.stop()
        return second.revision
      }
      if revision == 39 { return }
      #expect(revision == 40, "attempt \(attempt)")
    }
    Issue.record("no commit was in the log alone")
  }

  @Test func `a damaged journal reports the last sound revision`() async throws {
    try await withJournal { home, begun in
      // The damaged text belongs to the change of revision 50. Small commits are moved to the file
      // up to 16 turns in a row, and are lost with it.
      let text = Array(String(repeating: "x", count: 8 * 10).utf8)
      let place = try #require(Files.find(Array("c10".utf8), in: begun.bytes))
      let start = try #require(Files.find(text, in: Array(begun.bytes[place...]))) + place
      var changed = begun.bytes
      changed[start + 5] ^= 1
      Files.write(changed, to: home.journal)
      let refusal = try await home.refusal()
      #expect(refusal.contains("damaged: action "), "\(refusal)")
      let checked = try await home.lockstep("fsck", home.state)
      #expect(checked.status == .exit(11))
      let sound = try #require(checked.values.first?["soundRevision"]?.number)
      #expect((34...49).contains(sound), "\(checked.lines)")
      // The sound rows can still be read.
      let journal = try await home.lockstep("journal", home.state)
      #expect(journal.status == .exit(11))
      #expect(journal.values.compactMap { $0["revision"]?.number }.last ?? 0 <= 49)
      let daemon = try await home.start(["--recover-to", "\(sound)"])
      #expect(daemon.revision == UInt64(sound))
      try await daemon.stop()
    }
  }
}
