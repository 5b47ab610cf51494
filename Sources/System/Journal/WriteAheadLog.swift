import Glibc

/// The write-ahead log of a journal, as far as its own checksums tell.
///
/// SQLite reads a log up to the first frame that does not fit, and takes what follows for the
/// remains of a commit that was cut short; without a head that fits it reads no frame at all. But
/// each commit is synchronised before the next is written, and the head before all: where whole
/// commits follow, the log has changed on the disk, and what was durable would be lost silently.
struct WriteAheadLog {
  /// The frames, counted from 1.
  private(set) var frameCount = 0
  /// The first that does not fit the one before, or another generation; nil when all do.
  private(set) var brokenFrame: Int?
  /// Commits behind it that are of its generation, and whole.
  private(set) var lostCommits = 0
  /// Whether there are frames, and no head that SQLite would read them by.
  private(set) var lacksHead = false

  private var head: [UInt8]?
  private var isBigEndian = false
  private var salt: UInt64?
  /// The checksum in the frame before.
  private var former: LogFormat.Checksum = (0, 0)

  /// Read a log. O(its bytes). One that is missing has no frames.
  init(_ path: String) throws(JournalError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return }
      throw JournalError(.unreachable, "\(path): cannot be opened (\(SystemFailure())).")
    }
    defer { close(descriptor) }
    head = Self.read(descriptor, LogFormat.headBytes)
    guard let head else { return }
    head.withUnsafeBytes { take(head: $0) }
    while let frame = Self.read(descriptor, LogFormat.frameBytes) {
      frame.withUnsafeBytes { take(frame: $0) }
    }
    lacksHead = salt == nil && frameCount > 0
  }

  private static func head(of path: String) throws(JournalError) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return read(descriptor, LogFormat.headBytes)
  }

  private static func read(_ descriptor: Int32, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var have = 0
    while have < count {
      let more = bytes[have...].withUnsafeMutableBytes {
        Glibc.read(descriptor, $0.baseAddress, $0.count)
      }
      if more < 0 && errno == EINTR { continue }
      guard more > 0 else { return nil }
      have += more
    }
    return bytes
  }

  private mutating func take(head: UnsafeRawBufferPointer) {
    guard LogFormat.isHead(head) else { return }
    isBigEndian = LogFormat.isBigEndian(head)
    former = (LogFormat.word(head, 24), LogFormat.word(head, 28))
    salt = LogFormat.salt(head, at: 16)
  }

  private mutating func take(frame: UnsafeRawBufferPointer) {
    frameCount += 1
    guard let salt else { return }
    let stored = LogFormat.checksum(in: frame)
    let fits =
      LogFormat.salt(frame, at: 8) == salt
      && LogFormat.checksum(ofFrame: frame, isBigEndian: isBigEndian, after: former) == stored
    former = stored
    if brokenFrame == nil {
      if !fits { brokenFrame = frameCount }
    } else if fits, LogFormat.isCommit(frame) {
      lostCommits += 1
    }
  }
}

extension WriteAheadLog {
  /// Read a log that a daemon may be writing; nil if that begins it anew again and again meanwhile.
  init?(unchanging path: String) throws(JournalError) {
    for _ in 0..<5 {
      let log = try WriteAheadLog(path)
      if try WriteAheadLog.head(of: path) == log.head {
        self = log
        return
      }
    }
    return nil
  }

  /// What of the log cannot be reached; nil when that is no more than a commit that was cut short.
  /// A log without a head counts where it `isSure` that it was not about to be begun anew.
  func damage(_ path: String, isSure: Bool) -> String? {
    if lacksHead, isSure {
      return
        "\(path): damaged: the head of the log is lost, and \(frameCount) frames behind it cannot "
        + "be reached"
    }
    guard let brokenFrame, lostCommits > 1 else { return nil }
    return
      "\(path): damaged: frame \(brokenFrame) of \(frameCount), and \(lostCommits) commits behind "
      + "it cannot be reached"
  }
}

extension JournalReader {
  /// Make sure that no commits are lost in the write-ahead log, if each was synchronised before the
  /// next (`.sync`). Nobody may write the journal meanwhile. O(the log).
  ///
  /// Where it is noted what was durable (`isMarked`), that says whether anything was lost with the
  /// head: a crash of the machine may take it just when the log is begun anew, and all is in the
  /// file.
  func checkLog(isMarked: Bool) throws(JournalError) {
    let log = try WriteAheadLog(path + "-wal")
    guard let damage = log.damage(path + "-wal", isSure: !isMarked) else { return }
    // Without the log there may be nothing at all.
    let revision = try? contents().head.revision
    throw JournalError(
      .corrupt, damage + ".",
      advice: revision.map {
        "What is before it is right: `lockstepd --recover-to \($0)` goes on from there; or restore "
          + "both files from a backup."
      } ?? "Restore both files from a backup, or move them away to begin anew.")
  }
}
