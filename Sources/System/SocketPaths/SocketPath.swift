/// The path of the daemon's socket.
public enum SocketPath {
  /// The most bytes of a path: `sun_path` without its final NUL.
  public static let limit = 107

  /// The path that clients use when none is given: see `StandardPlaces`.
  public static var standard: String { StandardPlaces().forClient }

  /// The name of a socket in a directory of its user.
  static let name = "lockstep.sock"

  /// The path on which the machine's own daemon listens.
  package static let system = "/run/lockstep/" + name

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

  /// A directory that only this user may use, and that is not so.
  public struct Unsafe: Error, CustomStringConvertible {
    public let directory: String
    public var description: String {
      let other = SocketPlace.alternative.word
      return
        "\(directory) is not a directory of this user that is closed to others, so somebody else could "
        + "serve there in the daemon's name. Remove it, or serve elsewhere with '--socket \(other)', and "
        + "tell clients by the same option or LOCKSTEP_SOCKET=\(other)."
    }
  }

  /// Throws when a path is too long for a socket address, or empty.
  public static func check(_ path: String) throws(Unfit) {
    if path.utf8.count > limit || path.isEmpty { throw Unfit(path: path) }
  }
}
