public import Glibc

/// The credentials of a Unix socket's peer, as the kernel recorded them at `connect` or `listen`.
public struct PeerIdentity: Equatable, Sendable {
  /// The process that connected. It may have ended since, and its number may be another's.
  public let pid: pid_t
  /// The effective user.
  public let uid: uid_t
  /// The effective group.
  public let gid: gid_t
  /// The supplementary groups, in the kernel's order.
  public let groups: [gid_t]

  /// Asks the kernel, with two system calls; nil if `descriptor` is not a connected Unix socket.
  init?(descriptor: Int32) {
    var credentials = Credentials()
    var size = socklen_t(MemoryLayout<Credentials>.size)
    let status = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
    // For a socket without a peer the kernel answers with an invalid user.
    guard status == 0, credentials.uid != .max else { return nil }
    pid = credentials.pid
    uid = credentials.uid
    gid = credentials.gid
    groups = Self.groups(of: descriptor)
  }

  /// The kernel's `struct ucred`, which Glibc's headers show to GNU programs only.
  private struct Credentials {
    var pid: pid_t = 0
    var uid: uid_t = .max
    var gid: gid_t = .max
  }

  private static func groups(of descriptor: Int32) -> [gid_t] {
    let peerGroups: Int32 = 59  // SO_PEERGROUPS, which Glibc's headers here do not import.
    var groups = [gid_t](repeating: 0, count: 32)
    while true {
      var size = socklen_t(groups.count * MemoryLayout<gid_t>.stride)
      let status = getsockopt(descriptor, SOL_SOCKET, peerGroups, &groups, &size)
      let count = Int(size) / MemoryLayout<gid_t>.stride
      if status == 0 { return Array(groups.prefix(count)) }
      guard errno == ERANGE, count > groups.count else { return [] }
      groups = [gid_t](repeating: 0, count: count)
    }
  }
}
