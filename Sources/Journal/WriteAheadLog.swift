import Glibc

/// The write-ahead log of a file of SQLite, as far as its own checksums tell.
///
/// SQLite reads a log up to the first frame that does not fit, and takes what follows for the remains
/// of a commit that was cut short. But each commit is synchronised before the next is written: where
/// whole commits follow, the frame has changed on the disk, and what was safe would be lost silently.
struct WriteAheadLog {
  /// The frames, counted from 1, which are a page each.
  private(set) var frameCount = 0
  /// The first that does not fit the one before, or another generation; nil when all do.
  private(set) var brokenFrame: Int?
  /// Commits behind it that are of its generation, and whole.
  private(set) var lostCommits = 0

  private typealias Sum = (UInt32, UInt32)

  private var isBigEndian = false
  /// What the frames of one generation have in common.
  private var salt: UInt64?
  /// The checksum of the frame before, as it stands there.
  private var former: Sum = (0, 0)

  private static let headBytes = 32
  private static let frameHeadBytes = 24

  /// Read a log. O(its bytes). One that is not there has no frames.
  init(_ path: String) throws(JournalError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return }
      throw JournalError(.unreachable, "\(path): cannot be opened (\(SystemFailure())).")
    }
    defer { close(descriptor) }
    guard let head = Self.read(descriptor, Self.headBytes) else { return }
    head.withUnsafeBytes { take(head: $0) }
    // A journal has no other pages.
    while let frame = Self.read(descriptor, Self.frameHeadBytes + 4096) {
      frame.withUnsafeBytes { take(frame: $0) }
    }
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
    isBigEndian = Self.word(head, 0) & 1 == 1
    former = (Self.word(head, 24), Self.word(head, 28))
    let sum = sum(of: UnsafeRawBufferPointer(rebasing: head[..<24]), behind: (0, 0))
    if sum == former {
      salt = Self.salt(head, 16)
    } else {
      brokenFrame = 0
    }
  }

  private mutating func take(frame: UnsafeRawBufferPointer) {
    frameCount += 1
    let stored = (Self.word(frame, 16), Self.word(frame, 20))
    defer { former = stored }
    let own = Self.salt(frame, 8)
    // Without a head, the first frame says which generation it is.
    let fits = own == salt ?? own && fits(frame, stored)
    salt = salt ?? own
    if brokenFrame == nil {
      if !fits { brokenFrame = frameCount }
    } else if fits, Self.word(frame, 4) != 0 {
      lostCommits += 1
    }
  }

  private func fits(_ frame: UnsafeRawBufferPointer, _ stored: Sum) -> Bool {
    let head = sum(of: UnsafeRawBufferPointer(rebasing: frame[..<8]), behind: former)
    let page = UnsafeRawBufferPointer(rebasing: frame[Self.frameHeadBytes...])
    return sum(of: page, behind: head) == stored
  }

  private func sum(of bytes: UnsafeRawBufferPointer, behind sum: Sum) -> Sum {
    var (first, second) = sum
    for offset in stride(from: 0, to: bytes.count, by: 8) {
      let a = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let b = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      first &+= (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ second
      second &+= (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ first
    }
    return (first, second)
  }

  private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  private static func salt(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }
}

extension JournalReader {
  /// Make sure that no commits are lost in the write-ahead log, if each was synchronised before the
  /// next (`.sync`). Nobody may write the journal meanwhile. O(the log).
  public func checkLog() throws(JournalError) {
    let log = try WriteAheadLog(path + "-wal")
    // One may be the last, that was cut short.
    guard let frame = log.brokenFrame, log.lostCommits > 1 else { return }
    // Without the log there may be nothing at all.
    let revision = try identity() == nil ? nil : contents().head.revision
    let advice = revision.map {
      "What is before it is right: `lockstepd --recover-to \($0)` goes on from there; or restore"
    }
    throw JournalError(
      .corrupt,
      "\(path)-wal: damaged: frame \(frame) of \(log.frameCount), and \(log.lostCommits) commits "
        + "behind it cannot be reached. \(advice ?? "Restore") both files from a backup.")
  }
}
