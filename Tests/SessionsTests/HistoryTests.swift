import CBOR
import DaemonCore
import Testing
import Values

/// The patches that a server keeps, and their hand-over to the next process.
struct HistoryTests {
  private struct Change: Equatable {
    var revision: UInt64
    var patch: [UInt8]
  }

  private func changes(_ history: History, after revision: UInt64? = nil) -> [Change] {
    var found: [Change] = []
    history.forEach(after: revision ?? history.base) { revision, patch in
      found.append(Change(revision: revision, patch: [UInt8](patch)))
    }
    return found
  }

  private func read(_ bytes: [UInt8]) throws(CBORError) -> History {
    try CBORDecoder.read(bytes) { decoder throws(CBORError) in try History(from: &decoder) }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `a history that is handed over is unchanged, and can be extended`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    let limit = Int.random(in: 1_000...200_000, using: &random)
    var history = History(limit: limit, base: 10)
    var all: [Change] = []
    func add(to history: inout History) {
      // Some revisions have no patch, and sometimes there is a long gap.
      let most: UInt64 = Int.random(in: 0..<50, using: &random) == 0 ? 100 : 3
      let size = Int.random(in: 0..<20, using: &random) == 0 ? 20_000 : 100
      let revision = history.newest + UInt64.random(in: 1...most, using: &random)
      let byte = UInt8(truncatingIfNeeded: revision)
      let change = Change(
        revision: revision,
        patch: Array(repeating: byte, count: Int.random(in: 1...size, using: &random)))
      all.append(change)
      change.patch.withUnsafeBytes { history.append($0, revision: change.revision) }
    }
    for _ in 0..<Int.random(in: 0...600, using: &random) { add(to: &history) }

    var encoder = CBOREncoder()
    history.encode(into: &encoder)
    var next = try read(encoder.bytes)
    #expect(next.base == history.base && next.newest == history.newest)
    #expect(next.byteCount == history.byteCount)
    #expect(changes(next) == changes(history))

    next.bound(to: limit)
    for _ in 0..<100 { add(to: &next) }
    #expect(next.byteCount <= limit)
    // Everything newer than the base, and nothing else.
    #expect(changes(next) == all.filter { $0.revision > next.base })
    for from in [next.base, next.base + 5, next.newest] where next.covers(from) {
      let missed = all.filter { $0.revision > from }
      #expect(changes(next, after: from) == missed)
      #expect(next.byteCount(after: from) == missed.reduce(0) { $0 + $1.patch.count })
    }
    let newest = next.newest
    next.bound(to: 0)
    #expect(changes(next) == [] && next.base == newest && next.newest == newest)
  }

  @Test func `the room for more in an array of a patch decides nothing about eviction`() {
    var (tight, roomy) = (History(limit: 345_000, base: 0), History(limit: 345_000, base: 0))
    for revision in 1...40 as ClosedRange<UInt64> {
      let size = revision % 3 == 0 ? 70_000 : 10_000
      let patch = [UInt8](repeating: UInt8(revision), count: size)
      var copy: [UInt8] = []
      copy.reserveCapacity(4 * size)
      copy += patch
      tight.append(patch, revision: revision)
      roomy.append(copy, revision: revision)
      #expect(tight.base == roomy.base && tight.byteCount == roomy.byteCount)
      #expect(changes(tight) == changes(roomy))
    }
    #expect(tight.base > 0)
  }

  private static let odd: [(String, [(first: UInt64, bytes: [UInt8], sizes: [UInt64])])] = [
    ("a chunk that begins before the last one ends", [(5, [1, 2], [1, 1]), (6, [3], [1])]),
    ("a chunk at the base", [(2, [1], [1])]),
    ("bytes of no patch", [(3, [1, 2], [1])]),
    ("a patch beyond the bytes", [(3, [1], [2])]),
    ("a patch of more bytes than there can be", [(3, [1], [1, .max])]),
    ("a chunk without patches", [(3, [], [])]),
    ("a revision to which nobody counts", [(.max, [1], [1])]),
  ]

  @Test(arguments: odd)
  func `a malformed history is refused`(
    name: String, chunks: [(first: UInt64, bytes: [UInt8], sizes: [UInt64])]
  ) {
    var encoder = CBOREncoder()
    encoder.array(2)
    encoder.encode(2 as UInt64)
    encoder.array(3 * chunks.count)
    for chunk in chunks {
      encoder.encode(chunk.first)
      encoder.encode(bytes: chunk.bytes)
      encoder.array(chunk.sizes.count)
      for size in chunk.sizes { encoder.encode(size) }
    }
    #expect(throws: CBORError.self) { try read(encoder.bytes) }
  }

  /// Four bytes say where each patch ends, and an array of a chunk has no more room than the chunk.
  @Test(.enabled(if: AllocationPeak.isCounted), arguments: [12, 20, 35])
  func `patches take little more memory than their bytes`(size: Int) throws {
    let patch = [UInt8](repeating: 1, count: size)
    let limit = 4 << 20
    let peak = try AllocationPeak.bytes {
      var history = History(limit: limit, base: 0)
      for revision in 1...(2 * limit / size) {
        history.append(patch, revision: UInt64(revision))
      }
    }
    #expect(peak > limit && peak < limit + limit / size * 4 + limit / 16, "\(peak)")
  }
}
