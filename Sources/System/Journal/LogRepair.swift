import Glibc

// SQLite ignores a log without its head, though all frames may be intact: the first sector of a
// file is the likeliest target of stray writes. Each frame's checksum continues from the one
// before, so consecutive frames prove each other. They are written into a new log with a head of
// its own. The first of the agreeing frames is proved by its contents: every row has a seal.

/// Brings back the frames of a write-ahead log whose head is lost.
enum LogRepair {
  /// The result of a repair.
  struct Outcome: Equatable {
    var frameCount: Int
    /// The path of the damaged log.
    var backup: String
  }

  /// Replace a log without a head by one with a head, if its frames agree. Returns nil when the log
  /// has its head, or no frames that agree. The owner of the directory calls it, before SQLite
  /// opens the file. O(the log).
  static func repair(
    _ path: String, in directory: borrowing JournalDirectory
  ) throws(JournalError) -> Outcome? {
    guard try JournalDirectory.checkFile(path), try WriteAheadLog(path).lacksHead else {
      return nil
    }
    guard let log = SalvagedLog(try JournalDirectory.read(path)) else { return nil }
    let (draft, backup) = (path + ".new", try JournalDirectory.freeName(path + ".damaged"))
    unlink(draft)
    try JournalDirectory.write(log.bytes, to: draft)
    try directory.link(path, as: backup)
    try directory.rename(draft, to: path)
    forgetIndex(of: path)
    return Outcome(frameCount: log.frameCount, backup: backup)
  }

  /// The number of frames of a log that can be salvaged; nil when none.
  static func salvageableFrames(_ path: String) throws(JournalError) -> Int? {
    SalvagedLog(try JournalDirectory.read(path))?.frameCount
  }

  /// Restore the damaged log, when the salvaged one does not fit the file.
  static func undo(
    _ outcome: Outcome, _ path: String, in directory: borrowing JournalDirectory
  ) throws(JournalError) {
    try directory.rename(outcome.backup, to: path)
    forgetIndex(of: path)
  }

  /// Remove the log's index (`-shm`), which describes the former log.
  private static func forgetIndex(of log: String) { unlink(log.dropLast("-wal".count) + "-shm") }
}

/// A log made of the agreeing frames of another.
private struct SalvagedLog {
  private(set) var bytes: [UInt8]
  private(set) var frameCount = 0

  /// Nil when no two frames agree.
  init?(_ damaged: [UInt8]) {
    let count = (damaged.count - LogFormat.headBytes) / LogFormat.frameBytes
    var found: (frames: ClosedRange<Int>, isBigEndian: Bool)?
    damaged.withUnsafeBytes { log in
      for isBigEndian in [false, true] where found == nil {
        found = Self.agreeing(log, count, isBigEndian).map { ($0, isBigEndian) }
      }
    }
    guard let (frames, isBigEndian) = found else { return nil }
    bytes = damaged.withUnsafeBytes { log in
      let first = Self.frame(frames.lowerBound, log)
      return LogFormat.head(salt: LogFormat.salt(first, at: 8), isBigEndian: isBigEndian)
    }
    var former = bytes.withUnsafeBytes { (LogFormat.word($0, 24), LogFormat.word($0, 28)) }
    for number in frames {
      let start = LogFormat.offset(of: number)
      var frame = Array(damaged[start..<(start + LogFormat.frameBytes)])
      frame.withUnsafeMutableBytes { frame in
        former = LogFormat.checksum(
          ofFrame: UnsafeRawBufferPointer(frame), isBigEndian: isBigEndian, after: former)
        LogFormat.store(former.0, frame, 16)
        LogFormat.store(former.1, frame, 20)
      }
      bytes += frame
      frameCount += 1
    }
  }

  private static func frame(_ number: Int, _ log: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
  {
    let start = LogFormat.offset(of: number)
    return UnsafeRawBufferPointer(rebasing: log[start..<(start + LogFormat.frameBytes)])
  }

  /// The first series of frames in which each proves the one before it. Frames of an older
  /// generation may follow them.
  private static func agreeing(
    _ log: UnsafeRawBufferPointer, _ count: Int, _ isBigEndian: Bool
  ) -> ClosedRange<Int>? {
    func follows(_ number: Int) -> Bool {
      let (former, frame) = (frame(number - 1, log), frame(number, log))
      let salt = LogFormat.salt(frame, at: 8)
      return salt != 0 && salt == LogFormat.salt(former, at: 8)
        && LogFormat.checksum(
          ofFrame: frame, isBigEndian: isBigEndian, after: LogFormat.checksum(in: former))
          == LogFormat.checksum(in: frame)
    }
    guard count > 1, let second = (2...count).first(where: follows) else { return nil }
    var last = second
    while last < count, follows(last + 1) { last += 1 }
    return (second - 1)...last
  }
}
