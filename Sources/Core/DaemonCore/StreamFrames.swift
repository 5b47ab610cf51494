import Access
import CBOR
public import Values
import Wire

/// The frames that carry a state: encoded once, sent to all clients that need them.
public enum StreamFrames {
  /// The frames of a snapshot: the value form in parts, the last of them marked.
  public static func snapshot(
    of value: [UInt8], scope: UInt64, revision: UInt64, partBytes: Int
  ) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    frames.reserveCapacity(value.count / partBytes + 1)
    var start = 0
    repeat {
      let end = min(start + partBytes, value.count)
      frames.append(
        Frame.encode(expecting: end - start + 40) { encoder in
          ServerMessage.encodeSnapshot(
            scope: scope, revision: revision, index: UInt64(frames.count),
            isLast: end == value.count, value[start..<end], into: &encoder)
        })
      start = end
    } while start < value.count
    return frames
  }

  /// The frame of consecutive patches: `pairs` holds `count` spans, each followed by its patch.
  static func patches(
    _ pairs: [UInt8], count: Int, scope: UInt64, from: UInt64
  ) -> [UInt8] {
    var encoder = CBOREncoder(reservingCapacity: Frame.headLength + pairs.count + 32)
    ServerMessage.beginFrame(
      ofPatches: count, scope: scope, from: from, before: pairs.count, into: &encoder)
    encoder.bytes.append(contentsOf: pairs)
    return encoder.bytes
  }

  /// The number of patches in a frame that `patches` has made. O(1).
  static func patchCount(of frame: [UInt8]) -> UInt64 {
    let fields = frame.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Frame.headLength)))
      return (try? decoder.array()) ?? 0
    }
    return UInt64(max(0, fields - 3) / 2)
  }

  /// The frame of one patch between two revisions, without the last `count` bytes, which are the
  /// patch's.
  static func patchHead(
    before count: Int, isAbsent: Bool, wraps: Bool, scope: UInt64, from: UInt64,
    to revision: UInt64
  ) -> [UInt8] {
    var head = Frame.encode { encoder in
      ServerMessage.beginPatches(1, scope: scope, from: from, into: &encoder)
      encoder.encode(revision - from)
      if isAbsent { encoder.encodeUndefined() }
      if wraps { encoder.array(1) }
    }
    Frame.writeLength(head.count - Frame.headLength + count, into: &head, at: 0)
    return head
  }

  /// The frames, each of them in one piece: `patchHead` and its patch are joined.
  static func joined(_ pieces: Frames) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var isHead = false
    for piece in pieces {
      if isHead { frames[frames.count - 1] += piece } else { frames.append(piece) }
      isHead =
        !isHead && piece.count > Frame.headLength
        && piece.count < Frame.headLength + Frame.length(of: piece)
    }
    return frames
  }
}

/// A snapshot to be encoded, or the difference to a state from a former one, or the patches that a mirror
/// has missed, on any thread. An object that does not change, because jobs are copied.
public final class SnapshotJob<State: Synchronizable>: Sendable {
  /// What the frames lead from.
  enum Origin: Sendable {
    /// From nothing: they are a snapshot, of a state of as many bytes as may be expected, 0 if that is not
    /// known.
    case nothing(expectedBytes: Int)
    /// From a state at the first revision, as one patch of at most so many bytes, whose base is the revision
    /// that the mirrors are sure to have.
    case state(State, at: UInt64, base: UInt64, frameBytes: Int)
    /// From what has been found of the patches, by those in the history.
    case history(History, FrameLimits)
  }

  public let id: SnapshotJobID
  let state: State
  let path: Path
  /// Passes the visible part; nil if everything is visible.
  let filter: ViewFilter?
  let scope: UInt64
  let revision: UInt64
  let partBytes: Int
  let origin: Origin
  /// What has been found of the patches. Of a difference: what is sent before it to clients that begin with a
  /// snapshot, if any wait.
  let begun: BegunPatches?

  init(
    id: SnapshotJobID, state: State, path: Path, filter: ViewFilter?, scope: UInt64,
    revision: UInt64, partBytes: Int, from origin: Origin, behind begun: BegunPatches?
  ) {
    self.id = id
    self.state = state
    self.path = path
    self.filter = filter
    self.scope = scope
    self.revision = revision
    self.partBytes = partBytes
    self.origin = origin
    self.begun = begun
  }

  /// The same job, behind something that leads to the same revision.
  func behind(_ begun: BegunPatches) -> SnapshotJob {
    SnapshotJob(
      id: id, state: state, path: path, filter: filter, scope: scope, revision: revision,
      partBytes: partBytes, from: origin, behind: begun)
  }

  /// The frames. O(the size of the value at the path).
  public func encode() -> [[UInt8]] { measured().frames }

  /// Whether its difference is also one for a client that gets `begun` before it, if anything.
  func mayServe(_ begun: BegunPatches?) -> Bool {
    guard let begun, let own = self.begun else { return true }
    return own.isSame(as: begun)
  }

  /// The frames, and the encoded size of the whole value at the path, visible or not. Of a difference
  /// one frame, or none, and then 0 if nothing differs, and nil if no patch can express it. Of missed
  /// patches the number of revisions by which they lead on, and nil if they cannot be sent.
  ///
  /// There is room for a value of the expected bytes. If it takes more, or nothing is expected, the room is
  /// doubled, which takes three times the bytes for a moment.
  public func measured() -> (frames: [[UInt8]], wholeBytes: Int?) {
    switch origin {
    case .nothing(let expectedBytes):
      var encoder = CBOREncoder(reservingCapacity: expectedBytes)
      state.encode(at: path, into: &encoder)
      let wholeBytes = encoder.bytes.count
      // What is not visible is not kept beside the frames.
      if let filter { encoder.bytes = filter.shown(encoder.bytes) }
      return (frames(ofVisible: encoder.bytes), wholeBytes)
    case .state(let former, _, let base, let frameBytes):
      return difference(from: former, base: base, frameBytes: frameBytes)
    case .history(let history, let limits):
      let base = begun?.reached ?? revision
      let patches = MissedPatches(
        of: scope, at: path, by: filter, in: history, after: begun?.revision ?? revision,
        base: base, limits)
      if patches.loss != nil { return ([], nil) }
      return (Array(patches.frames), Int(clamping: patches.reached &- base))
    }
  }

  /// The frames of the value at the path, which has been encoded.
  func frames(of whole: [UInt8]) -> [[UInt8]] { frames(ofVisible: filter?.shown(whole) ?? whole) }

  private func frames(ofVisible bytes: [UInt8]) -> [[UInt8]] {
    StreamFrames.snapshot(of: bytes, scope: scope, revision: revision, partBytes: partBytes)
  }

  private func difference(
    from former: State, base: UInt64, frameBytes: Int
  ) -> (frames: [[UInt8]], wholeBytes: Int?) {
    var pair = CBOREncoder()
    pair.encode(revision - base)
    switch state.encodeDifference(from: former, at: path, by: filter, into: &pair) {
    case .patch, .absent: break
    case .untouched: return ([], 0)
    case .resync: return ([], nil)
    }
    guard pair.bytes.count + 64 <= frameBytes else { return ([], nil) }
    let frame = StreamFrames.patches(pair.bytes, count: 1, scope: scope, from: base)
    return ([frame], frame.count)
  }
}

extension Synchronizable {
  /// Append the patch from the visible part at a path in an old state to that in this one:
  /// `undefined` if nothing is visible any more. O(the difference).
  func encodeDifference(
    from before: Self, at path: Path, by filter: ViewFilter?, into encoder: inout CBOREncoder
  ) -> ViewFilter.Outcome {
    guard let filter else {
      return encodeDifference(from: before, at: path, into: &encoder) ? .patch : .untouched
    }
    var whole = CBOREncoder()
    guard encodeDifference(from: before, at: path, into: &whole) else { return .untouched }
    let outcome = whole.bytes.withUnsafeBytes { filter.filter(patch: $0, into: &encoder) }
    if outcome == .absent { encoder.encodeUndefined() }
    return outcome
  }
}
