public import CBOR
import Wire

/// The latest patches of the whole state, at most one for each revision, for clients that come
/// back.
///
/// Patches lie behind one another in chunks, each of revisions without a gap; the oldest chunk goes
/// when there are too many bytes.
public struct History: Sendable {
  fileprivate struct Chunk: Sendable {
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
  /// How many bytes there may be.
  private var limit: Int
  /// The newest revision that is not in the history: positions from here on can be resumed.
  public private(set) var base: UInt64

  private static let chunkBytes = 64 << 10

  /// A history in which there is nothing yet: it goes on from `base`.
  package init(limit: Int = .max, base: UInt64) {
    self.limit = limit
    self.base = base
  }

  package var byteCount: Int { total }

  /// The revision of the newest patch; `base` when there is none.
  package var newest: UInt64 { chunks.last.map { $0.first + UInt64($0.ends.count) - 1 } ?? base }

  /// Whether every change after `revision` is here.
  package func covers(_ revision: UInt64) -> Bool { revision >= base }

  /// Keep the patch that made `revision`, which is newer than those before. Of revisions that are
  /// left out there is nothing to keep. Amortised O(its bytes).
  package mutating func append(_ patch: UnsafeRawBufferPointer, revision: UInt64) {
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
    if total > limit { cut() }
  }

  /// Keep no more than so many bytes from here on.
  package mutating func bound(to limit: Int) {
    self.limit = limit
    cut()
  }

  private mutating func cut() {
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
  package func forEach(after revision: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Void) {
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
  package func byteCount(after revision: UInt64) -> Int {
    chunks.reduce(0) { $0 + $1.byteCount(after: revision) }
  }
}

// MARK: Handing over

extension History {
  /// Append it as one item, of chunks and not of patches: there may be hundreds of thousands of
  /// these. O(its bytes).
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    encoder.encode(base)
    encoder.array(3 * chunks.count)
    for chunk in chunks {
      encoder.encode(chunk.first)
      encoder.encode(bytes: chunk.bytes)
      encoder.array(chunk.ends.count)
      var start = 0
      for end in chunk.ends {
        encoder.encode(UInt64(end - start))
        start = end
      }
    }
  }

  /// Read what `encode` has written, and nothing else. O(its bytes).
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
      last = chunk.first + UInt64(chunk.ends.count) - 1
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
      ends.append(end)
    }
    decoder.close()
    guard end == bytes.count, !ends.isEmpty else {
      throw CBORError(.notAllowed("a chunk that is not made of its patches"), at: start)
    }
  }
}
