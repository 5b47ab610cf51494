import Glibc

/// A file that the daemon overwrites, in a directory where other users may make files too.
package enum OwnFile {
  /// The reason that a file is not written.
  package enum Failure: Error, Equatable {
    case system(Int32)
    /// A folder, a device, a pipe.
    case notOrdinary
    /// It has other names (hard links), under which it may be any file.
    case linked(names: UInt64)
  }

  /// Open a file for reading and writing, and make it, for its owner alone, if it is missing. Its
  /// contents are left as they are. Symbolic and hard links are refused, because they could lead to
  /// another user's file.
  package static func open(_ path: String) throws(Failure) -> Int32 {
    // Without `O_NONBLOCK`, opening a pipe would wait for the other end.
    let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let descriptor = Glibc.open(path, flags, 0o600)
    guard descriptor >= 0 else { throw .system(errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let number = errno
      close(descriptor)
      throw .system(number)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw .notOrdinary
    }
    guard status.st_nlink == 1 else {
      close(descriptor)
      throw .linked(names: UInt64(status.st_nlink))
    }
    return descriptor
  }
}

extension OwnFile {
  /// Replace a file atomically by one for its owner alone: a reader finds the one or the other,
  /// even after a crash of the machine.
  package static func replace(_ path: String, by bytes: [UInt8]) throws(JournalError) {
    let draft = path + ".new"
    unlink(draft)
    try JournalDirectory.write(bytes, to: draft)
    try JournalDirectory.rename(draft, to: path)
  }
}

extension OwnFile.Failure {
  /// The fault, as text to follow the path in a sentence.
  package var problem: String {
    switch self {
    case .system(ELOOP): "a symbolic link, and writing to it would change another file"
    case .system(let number): "cannot be opened (\(SystemFailure(number)))"
    case .notOrdinary: "not an ordinary file"
    case .linked(let names):
      "has \(names) names (hard links), and writing to it would change another file"
    }
  }

  func journalError(_ path: String, advice: String? = nil) -> JournalError {
    switch self {
    case .system(ENOSPC), .system(EDQUOT):
      JournalError(.full, "\(path): \(problem).", advice: "Make room on the file system.")
    case .system(ELOOP), .notOrdinary, .linked:
      JournalError(.unreachable, "\(path): \(problem).", advice: advice)
    case .system:
      JournalError(
        .unreachable, "\(path): \(problem).",
        advice: "See to it that the directory can be written and that this is an ordinary file.")
    }
  }
}
