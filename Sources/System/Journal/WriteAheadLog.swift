import Files
import SystemPackage

/// The write-ahead log of a journal, as its own checksums describe it.
///
/// SQLite reads a log up to the first frame that does not fit, and takes the rest for the remains
/// of an interrupted commit; without a valid head it reads no frame at all. But each commit is
/// synchronised before the next is written, and the head before all of them: if whole commits
/// follow the frame, the log has changed on the disk, and durable data would be lost silently.
struct WriteAheadLog {
  /// The number of frames. Frames are counted from 1.
  private(set) var frameCount = 0
  /// The first frame that does not fit the one before, or is of another generation; nil when all
  /// fit.
  private(set) var brokenFrame: Int?
  /// Whole commits after it, of the log's generation.
  private(set) var lostCommits = 0
  /// Whether there are frames without a valid head, which SQLite does not read.
  private(set) var lacksHead = false

  private var head: [UInt8]?
  private var isBigEndian = false
  private var salt: UInt64?
  /// The checksum in the frame before.
  private var former: LogFormat.Checksum = (0, 0)

  /// Read a log. O(its bytes). A missing one has no frames.
  init(_ path: String) throws(JournalError) {
    let file: FileDescriptor
    do throws(Errno) { file = try .opening(path, .readOnly, .noFollow) } catch {
      if error == .noSuchFileOrDirectory { return }
      throw JournalError(
        .unreachable, "\(path): cannot be opened (\(SystemFailure(error.rawValue))).")
    }
    defer { file.closeQuietly() }
    head = try? file.read(exactly: LogFormat.headBytes)
    guard let head else { return }
    head.withUnsafeBytes { take(head: $0) }
    while let frame = try? file.read(exactly: LogFormat.frameBytes) {
      frame.withUnsafeBytes { take(frame: $0) }
    }
    lacksHead = salt == nil && frameCount > 0
  }

  private static func head(of path: String) throws(JournalError) -> [UInt8]? {
    guard let file = try? FileDescriptor.opening(path, .readOnly, .noFollow) else { return nil }
    defer { file.closeQuietly() }
    return try? file.read(exactly: LogFormat.headBytes)
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
  /// Read a log that a daemon may be writing; nil if the daemon keeps restarting it meanwhile.
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

  /// The part of the log that cannot be reached; nil when that is at most one interrupted commit. A
  /// log without a head counts as damaged if it `isSure` that the log was not about to be
  /// restarted.
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
  /// Check that no commits are lost in the write-ahead log, if each was synchronised before the
  /// next (`.sync`). The journal must not be written meanwhile. O(the log).
  ///
  /// With a durable mark (`isMarked`), the mark shows whether anything was lost with the head: a
  /// crash of the machine may destroy the head just as the log is restarted, when everything is in
  /// the file.
  func checkLog(isMarked: Bool) throws(JournalError) {
    let log = try WriteAheadLog(path + "-wal")
    guard let damage = log.damage(path + "-wal", isSure: !isMarked) else { return }
    // Without the log, the journal may be empty.
    let revision = ownRevision
    throw JournalError(
      .corrupt, damage + ".",
      advice: revision.map {
        "What is before it is right: `\(JournalError.recovery(of: path, to: $0))` goes on from there; "
          + "or restore both files from a backup."
      } ?? "Restore both files from a backup, or move them away to begin anew.")
  }
}
