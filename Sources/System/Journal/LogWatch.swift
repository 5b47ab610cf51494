import Glibc

/// The write-ahead log as the last commit left it: its end, and the head of its last frame.
///
/// SQLite appends to the frames that it knows of, and copies them into the file, without checking
/// that they are there. If another program truncates the log in place or writes to it, later
/// commits would be lost with the process.
final class LogWatch {
  private let path: String
  /// Kept open: the process may have no descriptors left at the next commit.
  private var descriptor: Int32 = -1
  private var frames = 0
  private var lastFrame: [UInt8] = []

  init(_ path: String) { self.path = path }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Remember the log after a commit, at which it has this many frames.
  func note(frames: Int) {
    if descriptor < 0 { descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    self.frames = frames
    lastFrame = frames > 0 ? head(of: frames) : []
  }

  /// The damage to the log since then; nil when there is none, or it cannot be seen. Two system
  /// calls.
  ///
  /// Removing or replacing the log does not show here: this is the file that SQLite writes to.
  var damage: String? {
    var status = stat()
    guard frames > 0, !lastFrame.isEmpty, fstat(descriptor, &status) == 0 else { return nil }
    if Int(status.st_size) >= LogFormat.offset(of: frames + 1), hasLastFrame { return nil }
    return "\(path): another program has cut it or written over it. What it held is kept anew from "
      + "memory; see to it that no other program writes there."
  }

  /// Whether the head of the last frame is where it was.
  private var hasLastFrame: Bool {
    withUnsafeTemporaryAllocation(byteCount: lastFrame.count, alignment: 1) { found in
      let offset = off_t(LogFormat.offset(of: frames))
      return pread(descriptor, found.baseAddress, found.count, offset) == LogFormat.frameHeadBytes
        && lastFrame.areBytes(of: found)
    }
  }

  private func head(of frame: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: LogFormat.frameHeadBytes)
    let count = pread(descriptor, &bytes, bytes.count, off_t(LogFormat.offset(of: frame)))
    return Array(bytes.prefix(max(0, count)))
  }
}

extension [UInt8] {
  /// Whether a buffer has these bytes, and no others. The library's comparison of sequences takes forty
  /// instructions for each.
  func areBytes(of buffer: UnsafeMutableRawBufferPointer) -> Bool {
    withUnsafeBytes { bytes in
      guard bytes.count == buffer.count else { return false }
      guard let mine = bytes.baseAddress, let its = buffer.baseAddress else { return true }
      return memcmp(mine, its, bytes.count) == 0
    }
  }
}
