import Files
import Glibc
import SystemPackage

/// The directory of a journal, with an exclusive lock on it, which the kernel releases when the
/// process ends.
struct JournalDirectory: ~Copyable {
  /// Without symbolic links.
  let path: String
  private var lock: FileLock?

  var file: String { path + "/journal.sqlite" }

  /// Lock the directory. `create` makes it if its parent exists.
  init(_ name: String, create: Bool) throws(JournalError) {
    if create, mkdir(name, 0o700) != 0, errno != EEXIST {
      throw JournalError(
        .unreachable,
        "\(name): the directory cannot be made (\(SystemFailure())). "
          + "Make it, or name another.")
    }
    let path = try Self.resolve(name)
    try Self.checkDirectory(path)
    lock = try Self.lock(path + "/lock")
    self.path = path
  }

  /// Release the lock, so that another process can take the directory.
  mutating func release() { lock = nil }

  private static func resolve(_ name: String) throws(JournalError) -> String {
    guard let resolved = realpath(name, nil) else {
      throw JournalError(
        .unreachable,
        "\(name): the directory cannot be reached (\(SystemFailure())). Make it, or name another.")
    }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Refuse a directory to which other users may write: they could replace the journal.
  private static func checkDirectory(_ path: String) throws(JournalError) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw JournalError(
        .unreachable, "\(path): not a directory. Name the directory that the journal is in.")
    }
    try checkOwner(status, path)
    guard status.st_mode & 0o002 == 0 else {
      throw JournalError(
        .unreachable,
        "\(path): everybody may write to the directory. Take that right away (chmod o-w), or name "
          + "a directory of the daemon's own.")
    }
    // A user's private group, which some systems create for each user, has no other members.
    guard status.st_mode & 0o020 == 0 || status.st_gid == getegid() else {
      throw JournalError(
        .unreachable,
        "\(path): group \(status.st_gid) may write to the directory, and the daemon runs as group "
          + "\(getegid()). Take that right away (chmod g-w), or name a directory of the daemon's own."
      )
    }
  }

  private static func checkOwner(_ status: stat, _ path: String) throws(JournalError) {
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw JournalError(
        .unreachable,
        "\(path): belongs to user \(status.st_uid), and the daemon runs as user \(geteuid()). "
          + "Give it to that user (chown), or run as its owner.")
    }
  }

  private static func lock(_ path: String) throws(JournalError) -> FileLock {
    do throws(FileLock.Failure) {
      return try FileLock(path)
    } catch {
      throw Self.journalError(error, path)
    }
  }

  private static func journalError(_ failure: FileLock.Failure, _ path: String) -> JournalError {
    switch failure {
    case .held(let pid):
      let holder = pid.map { "process \($0)" } ?? "another process"
      return JournalError(
        .locked,
        "\(path): \(holder) has the journal. Stop it, or name another directory.")
    case .file(.system(let number)):
      return JournalError(
        number == ENOSPC || number == EDQUOT ? .full : .unreachable,
        "\(path): the lock cannot be opened (\(SystemFailure(number))). "
          + "See to it that the directory can be written and that this is an ordinary file.")
    case .file(let failure):
      return failure.journalError(path, advice: "Remove it, or name another directory.")
    }
  }

  /// Whether a file exists, which must be a regular file of ours. It is not opened: closing it
  /// would release the locks that SQLite has on it.
  static func checkFile(_ path: String) throws(JournalError) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else {
        throw JournalError(
          .unreachable,
          "\(path): cannot be reached (\(SystemFailure())). "
            + "See to it that the directory can be read.")
      }
      return false
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      let what =
        status.st_mode & S_IFMT == S_IFLNK
        ? "a symbolic link, which a journal must not be"
        : "not an ordinary file, as a journal must be"
      throw JournalError(
        .unreachable,
        "\(path): \(what). Move it away, or name another directory.")
    }
    try checkOwner(status, path)
    return true
  }

  /// Resolve the path of a journal, or of its directory, to the journal file. Without symbolic
  /// links.
  static func file(at name: String) throws(JournalError) -> String {
    func resolve(_ name: String) throws(JournalError) -> (String, stat) {
      guard let resolved = realpath(name, nil) else {
        let failure = SystemFailure()
        let advice =
          failure.number == EACCES
          ? "Run this as its owner, or as root." : "Name a journal, or its directory."
        throw JournalError(.unreachable, "\(name): cannot be reached (\(failure)). \(advice)")
      }
      defer { free(resolved) }
      var status = stat()
      _ = stat(resolved, &status)
      return (String(cString: resolved), status)
    }
    var (path, status) = try resolve(name)
    if status.st_mode & S_IFMT == S_IFDIR {
      (path, status) = try resolve(path + "/journal.sqlite")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw JournalError(
        .unreachable, "\(path): not an ordinary file. Name a journal, or its directory.")
    }
    return path
  }

  static func exists(_ path: String) throws(JournalError) -> Bool {
    var status = stat()
    if lstat(path, &status) == 0 { return true }
    if errno == ENOENT { return false }
    throw failure(path, "cannot be reached")
  }

  /// Refuse an empty file beside a write-ahead log: that is what is left of a journal that lost its
  /// contents, and SQLite would remove the log, which is all that there still is.
  static func checkContents(_ path: String) throws(JournalError) {
    guard size(path) == 0, size(path + "-wal") > 0 else { return }
    throw JournalError(
      .corrupt,
      "\(path): the file is empty, and its write-ahead log (\(path)-wal) is of one that was not.",
      advice: "Restore both files from a backup, or move them away to begin anew.")
  }

  /// The size of a file in bytes; 0 when there is none.
  static func size(_ path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Make an empty file that only its owner can read.
  static func makeFile(_ path: String) throws(JournalError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure(path, "cannot be made") }
    close(descriptor)
  }

  /// Synchronise a directory, so that the names in it survive a crash of the machine.
  static func synchronize(_ path: String) throws(JournalError) {
    let directory = try opened(path, .readOnly, .directory)
    defer { directory.closeQuietly() }
    try synchronize(directory, path)
  }

  /// Synchronise a file and its name, so that both survive a crash of the machine. SQLite must not
  /// have the file open.
  func keep(_ name: String) throws(JournalError) {
    let file = try Self.opened(name, .readOnly, .noFollow)
    defer { file.closeQuietly() }
    try Self.synchronize(file, name)
    try Self.synchronize(path)
  }

  private static func synchronize(
    _ file: FileDescriptor, _ path: String
  ) throws(JournalError) {
    guard fsync(file.rawValue) == 0 else { throw failure(path, "cannot be synchronised") }
  }

  /// Rename a file durably.
  func rename(_ from: String, to: String) throws(JournalError) { try Self.rename(from, to: to) }

  static func rename(_ from: String, to: String) throws(JournalError) {
    guard Glibc.rename(from, to) == 0 else { throw failure(from, "cannot be renamed") }
    try synchronize(String(to[..<(to.lastIndex(of: "/") ?? to.startIndex)]))
  }

  /// Remove a file durably.
  func remove(_ name: String) throws(JournalError) {
    guard unlink(name) == 0 else { throw Self.failure(name, "cannot be removed") }
    try Self.synchronize(path)
  }

  /// Give a file a second name (a hard link), durably.
  func link(_ from: String, as other: String) throws(JournalError) {
    guard Glibc.link(from, other) == 0 else { throw Self.failure(other, "cannot be made") }
    try Self.synchronize(path)
  }

  /// Copy a file into a new one that survives a crash of the machine once this returns. SQLite must
  /// not have the file open. O(its bytes).
  static func copy(_ from: String, to: String) throws(JournalError) {
    let source = try opened(from, .readOnly, .noFollow)
    defer { source.closeQuietly() }
    let target = try makeNew(to)
    defer { target.closeQuietly() }
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let part = try attempt(from, "cannot be read") { () throws(Errno) in
        try source.readPart(into: &buffer)
      }
      if part.isEmpty { break }
      try attempt(to, "cannot be written") { () throws(Errno) in try target.write(part) }
    }
    try synchronize(target, to)
  }

  /// Write a new file that survives a crash of the machine once this returns.
  static func write(_ bytes: [UInt8], to path: String) throws(JournalError) {
    let target = try makeNew(path)
    defer { target.closeQuietly() }
    try attempt(path, "cannot be written") { () throws(Errno) in try target.write(bytes) }
    try synchronize(target, path)
  }

  /// The bytes of a file; none if they are more than `limit`.
  static func read(_ path: String, limit: Int = .max) throws(JournalError) -> [UInt8] {
    let source = try opened(path, .readOnly, .noFollow)
    defer { source.closeQuietly() }
    return try attempt(path, "cannot be read") { () throws(Errno) in
      try source.readToEnd(limit: limit) ?? []
    }
  }

  private static func makeNew(_ path: String) throws(JournalError) -> FileDescriptor {
    try attempt(path, "cannot be made") { () throws(Errno) in
      try .opening(
        path, .writeOnly, [.create, .exclusiveCreate, .noFollow], permissions: .ownerReadWrite)
    }
  }

  private static func opened(
    _ path: String, _ mode: FileDescriptor.AccessMode, _ options: FileDescriptor.OpenOptions
  ) throws(JournalError) -> FileDescriptor {
    try attempt(path, "cannot be opened") { () throws(Errno) in
      try .opening(path, mode, options)
    }
  }

  private static func attempt<R>(
    _ path: String, _ what: String, _ body: () throws(Errno) -> R
  ) throws(JournalError) -> R {
    do throws(Errno) { return try body() } catch { throw failure(path, what, error) }
  }

  /// A file name that is not in use: this one, or this one with a number appended.
  static func freeName(_ name: String) throws(JournalError) -> String {
    var (candidate, number) = (name, 1)
    while try exists(candidate) {
      number += 1
      candidate = "\(name)-\(number)"
    }
    return candidate
  }

  private static func failure(
    _ path: String, _ what: String, _ error: Errno = Errno(rawValue: errno)
  ) -> JournalError {
    let kind: JournalError.Kind =
      switch error.rawValue {
      case ENOSPC, EDQUOT: .full
      case EACCES, EPERM, EROFS, ENOENT, ENOTDIR, ELOOP: .unreachable
      default: .failed
      }
    let advice =
      switch kind {
      case .full: "Make room on the file system."
      case .unreachable: "See to it that the directory can be read and written."
      default: "Look for errors of the disk in the system's log."
      }
    return JournalError(kind, "\(path): \(what) (\(SystemFailure(error.rawValue))). \(advice)")
  }
}
