import CBOR
import Wire

/// Checkpoints of the state among the patches of the history: from the oldest of them on, any state
/// can be made again.
///
/// A checkpoint is the state in value form, made beside the loop, so no state is held for the past,
/// and an action costs nothing more. One is due when as many bytes of patches have been made since the
/// last as that took, and a quarter of what the history stores, unless the history has lost the last:
/// so making them costs no more than the patches did, and together they take little more memory than
/// the history may. A state that takes more than half of that has no past; `Limits.historyBytes`
/// decides.
struct Past: Sendable {
  struct Checkpoint: Sendable {
    let revision: UInt64
    let bytes: [UInt8]
  }

  /// From the oldest to the newest. Those that are older than the history are of no use.
  private var checkpoints: [Checkpoint] = []
  /// Whether one is being made.
  private var isAwaited = false
  /// The bytes of the last one, and of all patches that had been made before it.
  private var lastBytes = 0
  private var changedBytes = 0

  init() {}

  /// The past of a process that begins with these, and has made so many bytes of patches since the last.
  init(_ checkpoints: [Checkpoint], changedBytes: Int) {
    self.checkpoints = checkpoints
    lastBytes = checkpoints.last?.bytes.count ?? 0
    self.changedBytes = -changedBytes
  }

  /// Whether a checkpoint is to be made now, which is noted. `changedBytes` counts those of all
  /// patches, and `stateBytes` is what the state took when it was measured; nil if it never was.
  mutating func begin(
    _ history: History, changedBytes: Int, stateBytes: Int?, limit: Int
  ) -> Bool {
    forget(history.base)
    guard !isAwaited, let stateBytes, stateBytes <= limit / 2 else { return false }
    let spent = changedBytes - self.changedBytes
    guard spent >= lastBytes, checkpoints.isEmpty || spent >= limit / 4 else { return false }
    isAwaited = true
    self.changedBytes = changedBytes
    return true
  }

  /// Note a checkpoint; empty bytes are none, because there was no memory for it.
  mutating func note(_ bytes: [UInt8], at revision: UInt64, _ history: History, limit: Int) {
    isAwaited = false
    if bytes.isEmpty { return }
    lastBytes = bytes.count
    guard bytes.count <= limit / 2 else { return forget(history.base) }
    checkpoints.append(Checkpoint(revision: revision, bytes: bytes))
    forget(history.base)
    // The history has lost it while it was made: another is due, even if nothing changes any more.
    if checkpoints.isEmpty { lastBytes = 0 }
  }

  private mutating func forget(_ base: UInt64) {
    checkpoints.removeAll { $0.revision < base }
  }

  #if FAULTS
    /// Label the checkpoints with a revision that is one too low.
    mutating func mislabel() {
      checkpoints = checkpoints.map {
        Checkpoint(revision: $0.revision - min(1, $0.revision), bytes: $0.bytes)
      }
    }
  #endif

  /// The newest checkpoint that is no newer than a revision, and behind which the history has every
  /// patch; nil if that is too long ago.
  func checkpoint(for revision: UInt64, in history: History) -> Checkpoint? {
    checkpoints.last { $0.revision <= revision && history.covers($0.revision) }
  }

  /// The revision of the newest checkpoint; nil if there is none.
  var newest: UInt64? { checkpoints.last?.revision }

  /// The oldest checkpoint behind which the history has every patch; nil if there is none.
  func oldest(in history: History) -> Checkpoint? {
    checkpoints.first { history.covers($0.revision) }
  }
}

// MARK: Handing over

extension Past {
  /// The past as the next process begins with it, which counts the bytes of patches anew: `changedBytes`
  /// are those of this one.
  func handedOver(at changedBytes: Int) -> Past {
    var next = self
    next.changedBytes -= changedBytes
    next.isAwaited = false
    return next
  }

  /// Append the past, with which a process has not begun yet, as one item. O(the bytes of the
  /// checkpoints).
  func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(lastBytes)
    encoder.encode(max(0, -changedBytes))
    encoder.array(2 * checkpoints.count)
    for checkpoint in checkpoints {
      encoder.encode(checkpoint.revision)
      encoder.encode(bytes: checkpoint.bytes)
    }
  }

  /// Read what `encode` has written; any other input throws. O(the bytes of the checkpoints).
  init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(3, "a past")
    let (lastBytes, spent) = (try decoder.int(), try decoder.int())
    let start = decoder.offset
    let checkpoints = try decoder.pairs { decoder throws(CBORError) in
      Checkpoint(revision: try decoder.count(), bytes: [UInt8](try decoder.byteString()))
    }
    decoder.close()
    guard zip(checkpoints, checkpoints.dropFirst()).allSatisfy({ $0.revision < $1.revision }) else {
      throw CBORError(.notAllowed("checkpoints out of order"), at: start)
    }
    // No process changes that much, and counting on from it does not overflow.
    guard (0...(1 << 60)).contains(lastBytes), (0...(1 << 60)).contains(spent) else {
      throw CBORError(.notAllowed("more bytes than there can be"), at: start)
    }
    self.init(checkpoints, changedBytes: spent)
    self.lastBytes = lastBytes
  }
}
