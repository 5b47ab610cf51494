internal import Glibc

/// The destination of datagrams: a socket's path, or a name in the abstract namespace, written with
/// `@`.
struct DatagramAddress: Sendable {
  let text: String
  private var address = sockaddr_un()
  private let length: socklen_t

  /// The most bytes of a path or an abstract name with its `@`.
  ///
  /// The address has room for one more byte; a path ends in a NUL there.
  static let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  /// Nil if `text` is neither an absolute path nor an abstract name, or is too long.
  init?(_ text: String) {
    let isPath = text.utf8.first == UInt8(ascii: "/")
    guard isPath || text.utf8.first == UInt8(ascii: "@"), text.utf8.count > 1,
      text.utf8.count <= Self.limit, !text.utf8.contains(0)
    else { return nil }
    self.text = text
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: text.utf8)
      if !isPath { path[0] = 0 }
    }
    let family = MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2
    // An abstract name has no terminator: the address's length ends it.
    length = socklen_t(family + text.utf8.count + (isPath ? 1 : 0))
  }

  func withSocketAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}
