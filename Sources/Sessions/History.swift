import Wire

/// The latest patches of the whole state, one for each revision, for clients that come back.
///
/// Patches lie behind one another in chunks; the oldest chunk goes when there are too many bytes.
struct History: Sendable {
  private struct Chunk: Sendable {
    /// The revision of the first patch.
    let first: UInt64
    var bytes: [UInt8] = []
    /// Where each patch ends.
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

  /// Keep the patch that made `revision`. Amortised O(its bytes).
  mutating func append(_ patch: [UInt8], revision: UInt64) {
    if chunks.isEmpty || chunks[chunks.count - 1].bytes.count >= Self.chunkBytes {
      chunks.append(Chunk(first: revision))
      chunks[chunks.count - 1].bytes.reserveCapacity(Self.chunkBytes)
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

  /// Note revisions up to this one of which there is nothing to keep. O(how many).
  mutating func skip(to revision: UInt64, from last: UInt64) {
    var next = last
    while next < revision {
      next += 1
      append([], revision: next)
    }
  }

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
