internal import Files
internal import Glibc
internal import SystemPackage

/// The state that a process hands over to the next one, in memory that a manager stores for it.
///
/// The memory is sealed before it is handed over: its size and contents cannot change after the
/// reader has measured it.
public enum HandOverMemory {
  /// A descriptor of memory that holds `parts` in sequence. The caller must close it.
  ///
  /// No child inherits it. `name` is shown in /proc, and has no other use. Throws the system's
  /// error: `ENOMEM`, `EMFILE`, or a name of more than 249 bytes (`EINVAL`).
  public static func make(
    _ parts: some Sequence<[UInt8]>, name: String = "lockstep-state"
  ) throws(SystemError) -> Int32 {
    try SealedMemory.make(name, parts)
  }

  /// The contents of a descriptor's memory, from its beginning. The caller keeps the descriptor.
  ///
  /// Throws when it is not such memory, is not sealed against shrinking, growing, writing and
  /// further seals, or has more than `limit` bytes.
  public static func read(
    _ descriptor: Int32, limit: Int
  ) throws(HandOverError) -> [UInt8] {
    guard SealedMemory.isSealed(descriptor) else { throw .notSealed }
    var file = stat()
    guard fstat(descriptor, &file) == 0 else {
      throw .system(SystemError(code: errno, operation: "measure the memory"))
    }
    guard file.st_size <= limit else { throw .tooLarge(bytes: Int(file.st_size), limit: limit) }
    let memory = FileDescriptor(rawValue: descriptor)
    do throws(Errno) {
      try memory.rewind()
      guard let bytes = try memory.read(exactly: Int(file.st_size)) else { throw Errno.ioError }
      return bytes
    } catch {
      throw .system(SystemError(code: error.rawValue, operation: "read the memory"))
    }
  }
}

/// The reason that an earlier process's hand-over cannot be used.
public enum HandOverError: Error, Equatable, CustomStringConvertible {
  /// The descriptor is not memory, or is memory that could still be changed.
  case notSealed
  /// The memory holds more than the reader allows.
  case tooLarge(bytes: Int, limit: Int)
  /// Reading failed.
  case system(SystemError)

  public var description: String {
    switch self {
    case .notSealed: "what was handed over is not sealed memory"
    case .tooLarge(let bytes, let limit):
      "what was handed over has \(bytes) bytes, and at most \(limit) are taken"
    case .system(let error): "\(error)"
    }
  }
}
