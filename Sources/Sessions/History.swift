import Wire

/// The latest patches of the whole state, at most one for each revision, for clients that come back.
///
/// Patches lie behind one another in chunks, each of revisions without a gap; the oldest chunk goes
/// when there are too many bytes.
struct History: Sendable {
  private struct Chunk: Sendable {
    /// The revision of the first patch.
    let first: UInt64
    var bytes: [UInt8] = []
    /// Where each patch ends. Those of revisions that are left out are empty.
    var ends: [Int] = []

    func byteCount(after revision: UInt64) -> Int {
      let older = revision < first ? 0 : min(Int(clamping: revision - first) + 1, ends.count)
      return bytes.count - (older == 0 ? 0 : ends[older - 1])
    }
  }

  private var chunks: [Chunk] = []
  private var total = 0
  private let limit: Int
  /// The newest revision that is not in the history: positions from here on can be resumed.
  private(set) var base: UInt64

  static let chunkBytes = 64 << 10

  init(limit: Int, base: UInt64) {
    self.limit = limit
    self.base = base
  }

  var byteCount: Int { total }

  /// Whether every change after `revision` is here.
  func covers(_ revision: UInt64) -> Bool { revision >= base }

  /// Keep the patch that made `revision`, which is newer than those before. Of revisions that are left
  /// out there is nothing to keep. Amortised O(its bytes).
  mutating func append(_ patch: [UInt8], revision: UInt64) {
    let next = chunks.last.map { $0.first + UInt64($0.ends.count) } ?? revision
    let isFull = chunks.last.map { $0.bytes.count >= Self.chunkBytes } ?? true
    if isFull || revision - next > Self.longestGap {
      chunks.append(Chunk(first: revision))
      if isFull { chunks[chunks.count - 1].bytes.reserveCapacity(Self.chunkBytes) }
    } else {
      let index = chunks.count - 1
      for _ in next..<revision { chunks[index].ends.append(chunks[index].bytes.count) }
    }
    let index = chunks.count - 1
    chunks[index].bytes.append(contentsOf: patch)
    chunks[index].ends.append(chunks[index].bytes.count)
    total += patch.count
    while total > limit, let oldest = chunks.first {
      total -= oldest.bytes.count
      base = oldest.first + UInt64(oldest.ends.count) - 1
      chunks.removeFirst()
    }
  }

  /// Revisions in a row of which there is nothing to keep, and which take a place all the same: a
  /// chunk takes more than so many places.
  private static let longestGap: UInt64 = 32

  /// Hand on the patches after `revision` with the revisions that they made, oldest first.
  func forEach(after revision: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Void) {
    for chunk in chunks where chunk.first + UInt64(chunk.ends.count) > revision + 1 {
      chunk.bytes.withUnsafeBytes { bytes in
        var start = 0
        for (offset, end) in chunk.ends.enumerated() {
          let made = chunk.first + UInt64(offset)
          if made > revision, end > start {
            body(made, UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
          }
          start = end
        }
      }
    }
  }

  /// The bytes of the patches after `revision`. O(chunks).
  func byteCount(after revision: UInt64) -> Int {
    chunks.reduce(0) { $0 + $1.byteCount(after: revision) }
  }
}
