import DaemonCore
import EventLoop
import Foundation
import Journal
import Lockstep
import Records
import Testing
import Values

@testable import LockstepServer

/// The errors that the journal's thread reports.
@Suite(.timeLimit(.minutes(1))) struct JournalWriterTests {
  private let folder: String
  private let news = Locked<[JournalEvent]>([])

  init() throws {
    var template = Array("/tmp/lockstep-writer-XXXXXX".utf8CString)
    folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  private func eventually(_ condition: ([JournalEvent]) -> Bool) async throws {
    while !condition(news.withLock { $0 }) { try await LoopClock().sleep(for: .milliseconds(2)) }
  }

  private func batch(_ number: UInt64) -> JournalBatch {
    var batch = JournalBatch(number: number, revision: number)
    batch.bytes = [1]
    batch.rows = [
      JournalRow(
        sequence: number, time: Timestamp(nanoseconds: 0), cause: .owner, name: "",
        action: nil, revision: number, change: .init(base: number - 1, patch: 0..<1), answer: nil)
    ]
    return batch
  }

  /// A writer of a new journal, which has the first batch, and the journal's path.
  private func begun() async throws -> (JournalWriter, path: String) {
    let file = try JournalFile(directory: folder, mode: .sync, create: true)
    try file.create(epoch: 1, seed: HashSeed(1))
    try file.begin(
      run: JournalRun(run: 1, base: 0), schema: [], revision: 0, time: Timestamp(nanoseconds: 0))
    let path = file.path
    let writer = try JournalWriter(.open(file), logged: 0) { [news] one in
      news.withLock { $0.append(one) }
    }
    writer.add(.batch(batch(1)))
    try await eventually { $0.last == .committed(through: 1) }
    return (writer, path)
  }

  @Test func `each reopen of an open file is reported`() async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (writer, path) = try await begun()
    try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
    writer.add(.batch(batch(2)))
    try await eventually { if case .failed? = $0.last { true } else { false } }
    writer.add(.reopen)
    try await eventually { if case .stillFailing? = $0.last { true } else { false } }
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
    // The snapshot that repairs the journal may fail for lack of memory, which this thread does not
    // know.
    for count in 1...3 {
      writer.add(.reopen)
      try await eventually { $0.count { $0 == .reopened } == count }
    }
    writer.close()
  }

  @Test(arguments: [false, true])
  func `the end of a run tells whether everything is kept`(isLost: Bool) async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (writer, path) = try await begun()
    if isLost {
      try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
      writer.add(.batch(batch(2)))
      try await eventually { if case .failed? = $0.last { true } else { false } }
    }
    let end = await withCheckedContinuation { done in
      writer.add(.end(revision: isLost ? 2 : 1) { done.resume(returning: $0) })
    }
    #expect(end == (isLost ? .changesLost : .noted))
    writer.close()
  }

  @Test func `a snapshot is kept in parts of a megabyte, whole and in order`() async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (writer, path) = try await begun()
    let bytes = (0..<(5 << 19) + 7).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 16) }
    let head = JournalSnapshot(
      revision: 1, base: 1, sequence: 1, time: Timestamp(nanoseconds: 0), digest: Digest(0),
      sessions: [], sessionCount: 0)
    writer.add(.snapshot(head, bytes: bytes, heals: nil))
    try await eventually { $0.last == .snapshotKept(bytes: bytes.count) }
    writer.close()
    let reader = try JournalReader(reading: path)
    defer { reader.close() }
    var parts: [[UInt8]] = []
    try reader.forEachPart { parts.append(Array($0)) }
    #expect(parts.map(\.count) == [1 << 20, 1 << 20, (1 << 19) + 7])
    let isWhole = Array(parts.joined()) == bytes
    #expect(isWhole)
  }

  @Test func `nothing is written after a gap until the snapshot that closes it`() async throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (writer, path) = try await begun()
    try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
    writer.add(.batch(batch(2)))
    try await eventually { if case .failed? = $0.last { true } else { false } }
    try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
    writer.add(.reopen)
    try await eventually { $0.last == .reopened }
    // The snapshot waits for memory. The changes not recorded meanwhile are missing in this
    // change's base.
    var change = batch(3)
    change.rows[0].change?.base = 1
    writer.add(.batch(change))
    writer.add(.reopen)
    try await eventually { $0.count { $0 == .reopened } == 2 }
    #expect(news.withLock { !$0.contains(.committed(through: 3)) }, "committed behind the gap")
    writer.add(.holdForSnapshot(1))
    writer.add(.batch(batch(4)))
    let head = JournalSnapshot(
      revision: 3, base: 3, sequence: 3, time: Timestamp(nanoseconds: 0), digest: Digest(0),
      sessions: [], sessionCount: 0)
    writer.add(.snapshot(head, bytes: [1], heals: 1))
    try await eventually { $0.last == .committed(through: 4) }
    #expect(
      news.withLock { Array($0.suffix(3)) } == [
        .committed(through: 3), .snapshotKept(bytes: 1), .committed(through: 4),
      ])
    writer.close()
    let reader = try JournalReader(reading: path)
    defer { reader.close() }
    var sequences: [UInt64] = []
    try reader.forEachRow(after: head.sequence) { sequences.append($0.row.sequence) }
    #expect(sequences == [4])
  }
}
