public import CBOR
import Wire

/// The latest patches of the whole state, at most one for each revision, for clients that resume.
///
/// Patches are stored in chunks, each of consecutive revisions; the oldest chunk is evicted when
/// there are too many bytes.
public struct History: Sendable {
  fileprivate struct Chunk: Sendable {
    /// The revision of the first patch.
    let first: UInt64
    var bytes: [UInt8] = []
    /// The end offset of each patch. Revisions without a patch have an empty range.
    var ends: [UInt32] = []
    /// The revision after its last.
    var next: UInt64 { first + UInt64(ends.count) }

    func byteCount(after revision: UInt64) -> Int {
      let older = revision < first ? 0 : min(Int(clamping: revision - first) + 1, ends.count)
      return bytes.count - (older == 0 ? 0 : Int(ends[older - 1]))
    }
  }

  private var chunks: [Chunk] = []
  private var total = 0
  /// The most bytes of patches to store.
  private var limit: Int
  /// The newest revision that is not in the history: a position at or after it can be resumed.
  public private(set) var base: UInt64

  /// With the array's head, one of the allocator's sizes.
  private static let chunkBytes = 64 << 10 - 64
  /// The most bytes of one patch: `ends` says where it ends.
  fileprivate static let patchBytes = Int(UInt32.max)

  /// An empty history, which begins after `base`.
  package init(limit: Int = .max, base: UInt64) {
    self.limit = limit
    self.base = base
  }

  package var byteCount: Int { total }

  /// The revision of the newest patch; `base` if there is none.
  package var newest: UInt64 { chunks.last.map { $0.next - 1 } ?? base }

  /// Whether the history has every change after `revision`.
  package func covers(_ revision: UInt64) -> Bool { revision >= base }

  /// Append the patch that made `revision`, which is newer than those before. Skipped revisions
  /// have no patch to store. Amortised O(its bytes); O(1) for a large patch whose array has little room
  /// for more.
  @inline(__always)
  package mutating func append(_ patch: [UInt8], revision: UInt64) {
    if patch.count >= Self.chunkBytes { return appendLarge(patch, revision) }
    patch.withUnsafeBytes { append($0, revision: revision) }
  }

  /// Store a large patch as a chunk of its own: its array, or a copy without the room for more. Which of
  /// the two decides nothing else, so a recording that is done again evicts the same chunks.
  @inline(never)
  private mutating func appendLarge(_ patch: [UInt8], _ revision: UInt64) {
    if patch.count > min(limit, Self.patchBytes) { return evictAll(through: revision) }
    let isTight = patch.capacity - patch.count <= patch.count / 8
    let bytes = isTight ? patch : patch.withUnsafeBytes { [UInt8]($0) }
    chunks.append(Chunk(first: revision, bytes: bytes, ends: [UInt32(patch.count)]))
    total += patch.count
    if total > limit { cut() }
  }

  /// As for an array. Amortised O(its bytes).
  package mutating func append(_ patch: UnsafeRawBufferPointer, revision: UInt64) {
    // It would be evicted at once, and all before it.
    if patch.count > min(limit, Self.patchBytes) { return evictAll(through: revision) }
    var index = chunks.count - 1
    let isFull = index < 0 || chunks[index].bytes.count + patch.count > Self.chunkBytes
    if isFull || revision - chunks[index].next > Self.longestGap {
      index += 1
      chunks.append(Chunk(first: revision))
      if isFull { reserve(for: index) }
    } else {
      for _ in chunks[index].next..<revision {
        chunks[index].ends.append(UInt32(chunks[index].bytes.count))
      }
    }
    chunks[index].bytes.append(contentsOf: patch)
    chunks[index].ends.append(UInt32(chunks[index].bytes.count))
    total += patch.count
    if total > limit { cut() }
  }

  /// Make room for a whole chunk, of as many patches as the one before.
  @inline(never)
  private mutating func reserve(for index: Int) {
    chunks[index].bytes.reserveCapacity(Self.chunkBytes)
    if index > 0 { chunks[index].ends.reserveCapacity(chunks[index - 1].ends.count) }
  }

  /// Change the limit of bytes, and evict chunks until it holds.
  package mutating func bound(to limit: Int) {
    self.limit = limit
    cut()
  }

  @inline(never)
  private mutating func evictAll(through revision: UInt64) {
    (chunks, total, base) = ([], 0, revision)
  }

  private mutating func cut() {
    while total > limit, let oldest = chunks.first {
      total -= oldest.bytes.count
      base = oldest.next - 1
      chunks.removeFirst()
    }
  }

  /// The longest gap of revisions without a patch that is stored as empty entries: a new chunk
  /// takes more memory than so many entries.
  private static let longestGap: UInt64 = 32

  /// Call `body` with each patch after `revision` and the revision that it made, oldest first.
  package func forEach(after revision: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Void) {
    for chunk in chunks where chunk.next > revision + 1 {
      chunk.bytes.withUnsafeBytes { bytes in
        var start = 0
        for (offset, end) in chunk.ends.enumerated() {
          let (made, end) = (chunk.first + UInt64(offset), Int(end))
          if made > revision, end > start {
            body(made, UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
          }
          start = end
        }
      }
    }
  }

  /// The patch that made a revision; nil if it had none, or is forgotten. O(its bytes, and log
  /// chunks).
  package func patch(of revision: UInt64) -> [UInt8]? {
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle].next <= revision { low = middle + 1 } else { high = middle }
    }
    guard low < chunks.count, chunks[low].first <= revision else { return nil }
    let index = Int(revision - chunks[low].first)
    let start = index == 0 ? 0 : Int(chunks[low].ends[index - 1])
    let range = start..<Int(chunks[low].ends[index])
    return range.isEmpty ? nil : Array(chunks[low].bytes[range])
  }

  /// The number of bytes of the patches after `revision`. O(chunks).
  package func byteCount(after revision: UInt64) -> Int {
    chunks.reduce(0) { $0 + $1.byteCount(after: revision) }
  }
}

// MARK: Handing over

extension History {
  /// Append the history as one item, by chunks and not by patches: there may be hundreds of
  /// thousands of patches. O(its bytes).
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    encoder.encode(base)
    encoder.array(3 * chunks.count)
    for chunk in chunks {
      encoder.encode(chunk.first)
      encoder.encode(bytes: chunk.bytes)
      encoder.array(chunk.ends.count)
      var start: UInt32 = 0
      for end in chunk.ends {
        encoder.encode(UInt64(end - start))
        start = end
      }
    }
  }

  /// Read what `encode` has written; any other input throws. O(its bytes).
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(2, "a history")
    self.init(base: try decoder.count())
    let start = decoder.offset
    chunks = try decoder.groups(of: 3) { decoder throws(CBORError) in
      try Chunk(from: &decoder)
    }
    var last = base
    for chunk in chunks {
      guard chunk.first > last else {
        throw CBORError(.notAllowed("patches out of order"), at: start)
      }
      last = chunk.next - 1
      total += chunk.bytes.count
    }
    decoder.close()
  }
}

extension History.Chunk {
  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    self.init(first: try decoder.count(), bytes: [UInt8](try decoder.byteString()))
    let start = decoder.offset
    var end = 0
    for _ in 0..<(try decoder.array()) {
      let size = try decoder.unsigned()
      guard size <= UInt64(bytes.count - end) else {
        throw CBORError(.notAllowed("a patch beyond the bytes of its chunk"), at: start)
      }
      end += Int(size)
      ends.append(UInt32(clamping: end))
    }
    decoder.close()
    guard end == bytes.count, end <= History.patchBytes, !ends.isEmpty else {
      throw CBORError(.notAllowed("a chunk that is not made of its patches"), at: start)
    }
  }
}
