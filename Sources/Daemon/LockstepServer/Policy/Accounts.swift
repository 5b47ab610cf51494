import Glibc

/// The users and groups of the machine, by name.
struct Accounts: Sendable {
  enum Answer: Equatable, Sendable {
    case found(UInt64)
    case unknown
    /// The lookup failed, for this reason.
    case failed(String)
  }

  var user: @Sendable (String) -> Answer
  var group: @Sendable (String) -> Answer

  /// A machine without accounts.
  static let none = Accounts(user: { _ in .unknown }, group: { _ in .unknown })

  /// The accounts of the system: its files, and every other source that /etc/nsswitch.conf names.
  static let system = Accounts(
    user: { name in
      var entry = passwd()
      return lookUp(name) { buffer in
        let count = buffer.count
        var found: UnsafeMutablePointer<passwd>?
        let status = getpwnam_r(name, &entry, &buffer, count, &found)
        return (status, found.map { UInt64($0.pointee.pw_uid) })
      }
    },
    group: { name in
      var entry = Glibc.group()
      return lookUp(name) { buffer in
        let count = buffer.count
        var found: UnsafeMutablePointer<Glibc.group>?
        let status = getgrnam_r(name, &entry, &buffer, count, &found)
        return (status, found.map { UInt64($0.pointee.gr_gid) })
      }
    })

  /// Retry with ever larger buffers: an entry may be long.
  private static func lookUp(
    _ name: String, _ ask: (_ buffer: inout [CChar]) -> (status: Int32, id: UInt64?)
  ) -> Answer {
    // C would look up the part in front of the NUL.
    if name.utf8.contains(0) { return .unknown }
    var size = 1 << 12
    while true {
      var buffer = [CChar](repeating: 0, count: size)
      let (status, id) = ask(&buffer)
      if let id, status == 0 { return .found(id) }
      switch status {
      case EINTR: continue
      case ERANGE where size < 1 << 24: size *= 4
      // The manual gives all of these for an unknown name.
      case 0, ENOENT, ESRCH, EBADF, EPERM: return .unknown
      default: return .failed(String(cString: strerror(status)))
      }
    }
  }
}
