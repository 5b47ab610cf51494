import EventLoop
import Glibc
import Journal
import SocketPaths

/// The exclusive claim to serve on a socket's path: a lock beside it, which the kernel releases
/// when the process ends, so that two daemons never share a path and a dead one's socket is taken
/// over.
struct SocketClaim: ~Copyable {
  private let lock: FileLock

  /// The reason that the path cannot be served on. Each text says what to do.
  enum Failure: Error, CustomStringConvertible, Equatable {
    case inUse(path: String, pid: Int32?)
    case notASocket(path: String)
    case noDirectory(path: String, reason: String)
    case foreignLock(path: String, reason: String)

    var description: String {
      switch self {
      case .inUse(let path, let pid?):
        "another daemon serves on \(path) already: pid \(pid). "
          + "Stop it, or give this one another path with --socket."
      case .inUse(let path, nil):
        "another process serves on \(path) already. Give this one another path with --socket."
      case .notASocket(let path):
        "\(path) exists and is not a socket. Move it away, or give another path with --socket."
      case .noDirectory(let path, let reason):
        "cannot serve on \(path): \(reason). \(Self.advice(path))"
      case .foreignLock(let path, let reason):
        "\(path): \(reason). Remove it, or give another path with --socket."
      }
    }

    /// Advice on how this user can serve on the path, or else on another.
    private static func advice(_ path: String) -> String {
      let place = SocketPlace(path)
      if place.isServable, !place.hasDirectory {
        return "Make its directory: 'mkdir --parents \(SocketPlace.word(place.directory))'."
      }
      let other = SocketPlace.alternative.word
      return
        "Serve where you may, with '--socket \(other)', and tell clients by the same option or "
        + "LOCKSTEP_SOCKET=\(other)."
    }
  }

  /// Claim a path, and remove a dead daemon's socket from it.
  init(_ path: String) throws(Failure) {
    lock = try Self.lock(path)
  }

  private static func lock(_ path: String) throws(Failure) -> FileLock {
    // No lock is left beside a file that is not a socket.
    if isTaken(path) { throw .notASocket(path: path) }
    let file = path + ".lock"
    let lock: FileLock
    do throws(FileLock.Failure) {
      lock = try FileLock(file)
    } catch {
      switch error {
      case .held(let pid): throw .inUse(path: path, pid: pid)
      case .file(.system(let number)) where number != ELOOP:
        throw .noDirectory(path: path, reason: String(cString: strerror(number)))
      case .file(let failure): throw .foreignLock(path: file, reason: failure.problem)
      }
    }
    try removeStaleSocket(path)
    return lock
  }

  /// Whether the path has a file that is not a socket.
  private static func isTaken(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK
  }

  private static func removeStaleSocket(_ path: String) throws(Failure) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
    // The lock is ours, so no Lockstep daemon listens; another program might.
    if let pid = listener(at: path) { throw .inUse(path: path, pid: pid > 0 ? pid : nil) }
    unlink(path)
  }

  /// The process that listens on a socket; 0 if it is unknown, nil if none listens.
  private static func listener(at path: String) -> Int32? {
    let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { return nil }
    defer { close(socket) }
    guard connect(socket, to: path) else { return nil }
    var credentials: (pid: Int32, uid: UInt32, gid: UInt32) = (0, 0, 0)
    var size = socklen_t(MemoryLayout.size(ofValue: credentials))
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
    return credentials.pid
  }

  /// Connect a socket to a path. Returns whether that was possible; `errno` says why not.
  static func connect(_ socket: Int32, to path: String) -> Bool {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
  }
}
