internal import Glibc

/// The path of the daemon's socket.
public enum SocketPath {
  /// The most bytes of a path: `sun_path` without its final NUL.
  public static let limit = 107

  /// The path that daemon and clients use when none is given: `$LOCKSTEP_SOCKET`, else
  /// `lockstep.sock` in `$XDG_RUNTIME_DIR`, else `/run/lockstep/lockstep.sock`.
  public static var standard: String {
    func variable(_ name: String) -> String? {
      guard let value = getenv(name), value.pointee != 0 else { return nil }
      return String(cString: value)
    }
    if let path = variable("LOCKSTEP_SOCKET") { return path }
    if let directory = variable("XDG_RUNTIME_DIR") { return directory + "/lockstep.sock" }
    return system
  }

  /// The path on which the machine's own daemon listens.
  package static let system = "/run/lockstep/lockstep.sock"

  /// A path that does not fit a socket address, or is empty.
  public struct Unfit: Error, CustomStringConvertible {
    public let path: String
    public var description: String {
      if path.isEmpty { return "the socket path is empty" }
      return
        "the socket path has \(path.utf8.count) bytes, and the system allows \(SocketPath.limit): "
        + path
    }
  }

  /// Throws when a path is too long for a socket address, or empty.
  public static func check(_ path: String) throws(Unfit) {
    if path.utf8.count > limit || path.isEmpty { throw Unfit(path: path) }
  }
}
