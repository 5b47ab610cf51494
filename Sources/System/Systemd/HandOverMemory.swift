internal import Glibc

/// The state that a process leaves to the next one, as memory that a manager keeps for it.
///
/// The memory is sealed before it is handed over: whoever reads it can measure it first, and it
/// stays as it was measured.
public enum HandOverMemory {
  /// A descriptor of memory that holds `parts`, one behind the other. It is the caller's to close.
  ///
  /// No child inherits it. `name` is what /proc shows, and not looked at otherwise. Throws what the
  /// system refused: `ENOMEM`, `EMFILE`, or a name of more than 249 bytes (`EINVAL`).
  public static func make(
    _ parts: some Sequence<[UInt8]>, name: String = "lockstep-state"
  ) throws(SystemError) -> Int32 {
    try SealedMemory.make(name, parts)
  }

  /// What the memory of a descriptor holds, from its beginning. The descriptor stays the caller's.
  ///
  /// Throws when it is not such memory, is not sealed against shrinking, growing, writing and other
  /// seals, or has more than `limit` bytes.
  public static func read(
    _ descriptor: Int32, limit: Int
  ) throws(HandOverError) -> [UInt8] {
    guard SealedMemory.isSealed(descriptor) else { throw .notSealed }
    var file = stat()
    guard fstat(descriptor, &file) == 0 else {
      throw .system(SystemError(code: errno, operation: "measure the memory"))
    }
    guard file.st_size <= limit else { throw .tooLarge(bytes: Int(file.st_size), limit: limit) }
    var bytes = [UInt8](repeating: 0, count: Int(file.st_size))
    var position = 0
    while position < bytes.count {
      let count = bytes.withUnsafeMutableBytes {
        pread(descriptor, $0.baseAddress.map { $0 + position }, $0.count - position, position)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        throw .system(SystemError(code: count < 0 ? errno : EIO, operation: "read the memory"))
      }
      position += count
    }
    return bytes
  }
}

/// Why what an earlier process left cannot be used.
public enum HandOverError: Error, Equatable, CustomStringConvertible {
  /// The descriptor is not memory, or memory that somebody could still change.
  case notSealed
  /// There is more than the reader allows.
  case tooLarge(bytes: Int, limit: Int)
  /// The system did not let us read.
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
