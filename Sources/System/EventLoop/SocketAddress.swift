internal import Glibc

/// A path that is known to fit into a Unix socket's address.
struct SocketAddress {
  private var address = sockaddr_un()

  /// The most bytes of a path; the address has one more, for the final NUL.
  static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  /// Throws `ENAMETOOLONG`, and `EINVAL` for a path that is empty or has a NUL in it.
  ///
  /// libuv would truncate a long path, and bind or connect to another one.
  init(path: String, operation: String) throws(LoopError) {
    let length = path.utf8.count
    if length > Self.longestPath {
      throw LoopError(
        code: -ENAMETOOLONG,
        operation: "\(operation) (\(length) bytes, and a socket's path has at most "
          + "\(Self.longestPath))")
    }
    if length == 0 || path.utf8.contains(0) {
      throw LoopError(code: -EINVAL, operation: operation)
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  }

  func bind(_ descriptor: Int32) -> Int32 {
    withUnsafePointer(to: address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
