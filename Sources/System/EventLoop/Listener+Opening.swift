public import Glibc

extension Listener {
  /// A listener on a new socket at `path`, whose file has exactly the permissions `mode`.
  ///
  /// The file never has more permissions than that. Each connection is given to `onConnection` as a
  /// pipe that does not read yet. Throws `EADDRINUSE` when the file exists already, even as a stale
  /// socket: the caller decides whether to remove it. Throws `ENAMETOOLONG` when the path is longer
  /// than a socket's path may be (107 bytes).
  public static func bind(
    path: String, mode: mode_t, backlog: Int32 = 128, on loop: Loop,
    onConnection: @escaping (Pipe) -> Void
  ) throws(LoopError) -> Listener {
    let descriptor = try boundSocket(path: path, mode: mode)
    do throws(LoopError) {
      try check(Glibc.listen(descriptor, backlog) == 0 ? 0 : -errno, "listen on \(path)")
      return try Listener(descriptor, path: path, on: loop, onConnection: onConnection)
    } catch {
      Glibc.unlink(path)
      Glibc.close(descriptor)
      throw error
    }
  }

  /// A listener on a socket that is listening already, such as one that systemd passes.
  ///
  /// The listener takes ownership of the descriptor; if this throws, the caller keeps it. Throws
  /// `EINVAL` when it is not a listening socket.
  public static func adopt(
    descriptor: Int32, on loop: Loop, onConnection: @escaping (Pipe) -> Void
  ) throws(LoopError) -> Listener {
    let operation = "adopt the listening descriptor \(descriptor)"
    var listens: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    let status = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size)
    try check(status == 0 ? 0 : -errno, operation)
    try check(listens != 0 ? 0 : -EINVAL, operation)
    return try Listener(descriptor, path: nil, on: loop, onConnection: onConnection)
  }

  private static func boundSocket(path: String, mode: mode_t) throws(LoopError) -> Int32 {
    let operation = "bind \(path)"
    let address = try SocketAddress(path: path, operation: operation)
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_UNIX, kind, 0)
    try check(descriptor >= 0 ? 0 : -errno, "make a socket for \(path)")
    // Linux gives the file the mode of the socket, less the umask. So it never has too many
    // permissions, and the umask, which belongs to all threads, stays as it is.
    guard fchmod(descriptor, mode) == 0, address.bind(descriptor) == 0 else {
      let error = LoopError(code: -errno, operation: operation)
      Glibc.close(descriptor)
      throw error
    }
    // Restore the permissions that the umask removed.
    guard chmod(path, mode) == 0 else {
      let error = LoopError(code: -errno, operation: "set the mode of \(path)")
      Glibc.unlink(path)
      Glibc.close(descriptor)
      throw error
    }
    return descriptor
  }
}
