internal import Glibc

/// Where a daemon listens and clients look when no path is given: for both the same places, in the same
/// order, so that the two of one user meet on a desktop, over ssh, by cron, as root and in a container.
///
/// `$LOCKSTEP_SOCKET` is the only place if it is set. Else, in this order:
///
/// 1. `lockstep.sock` in `$XDG_RUNTIME_DIR`; if that is not set, in `/run/user/UID`, except for root.
///    Only if the directory is there and this user's own, as the XDG specification demands: `su` and
///    `sudo --preserve-env` pass on somebody else's.
/// 2. `/run/lockstep/lockstep.sock`, of the machine's own daemon. A daemon of root makes the directory.
/// 3. `/tmp/lockstep-UID/lockstep.sock`. A daemon makes the directory, for this user alone.
///
/// For a user who may not make a socket in the second, the third comes before it: so a daemon listens
/// on the first of its places. A client takes the first that has a socket.
///
/// Anybody could make the third before its user does, and be taken for the user's daemon. So it counts
/// only if it is a directory, not a link, of this user, and closed to others. tmux does the same with
/// `/tmp/tmux-UID`.
public struct StandardPlaces: Sendable {
  /// The paths of sockets, in order. Never empty.
  public let paths: [String]
  private let machine: String
  private let own: String
  private let user: UInt32

  /// The places of the user of this process, with its environment: a few system calls.
  public init() {
    self.init { getenv($0).map { String(cString: $0) } }
  }

  /// `root` stands before the paths that are not of the environment, for tests.
  package init(user: UInt32 = geteuid(), root: String = "", environment: (String) -> String?) {
    func variable(_ name: String) -> String? {
      environment(name).flatMap { $0.isEmpty ? nil : $0 }
    }
    self.user = user
    machine = root + SocketPath.system
    own = "\(root)/tmp/lockstep-\(user)/\(SocketPath.name)"
    if let path = variable("LOCKSTEP_SOCKET") {
      paths = [path]
      return
    }
    let runtime = variable("XDG_RUNTIME_DIR") ?? (user == 0 ? nil : "\(root)/run/user/\(user)")
    let isOwned = runtime.flatMap { FileStatus($0) }.map { $0.isDirectory && $0.owner == user }
    paths =
      (isOwned == true ? ["\(runtime ?? "")/\(SocketPath.name)"] : [])
      + (Self.mayServe(at: machine, user) ? [machine, own] : [own, machine])
  }

  /// The rule in words, for help.
  package static let help = """
    If no path is given, a daemon listens on the first of these places where it may, and clients \
    look for a socket in the same order: lockstep.sock in $XDG_RUNTIME_DIR, or if that is not set \
    in /run/user/UID; /run/lockstep/lockstep.sock, where the machine's own daemon listens; \
    /tmp/lockstep-UID/lockstep.sock, in a directory that is closed to other users.
    """

  /// Where a daemon listens.
  public var forDaemon: String { paths[0] }

  /// Where a client connects: the first path that has a socket, else the first, but none that somebody
  /// else could have put there. It may be another one later.
  public var forClient: String {
    let trusted = paths.filter(isTrusted)
    return trusted.first { FileStatus($0)?.isSocket == true } ?? trusted.first ?? forDaemon
  }

  /// Whether a daemon can listen where it should.
  var mayServe: Bool { SocketPlace(forDaemon).isServable && isTrusted(forDaemon) }

  /// False for the place that is this user's own if its directory is there and is another user's, or
  /// open to others.
  private func isTrusted(_ path: String) -> Bool {
    guard path == own, let directory = FileStatus(SocketPlace(path).directory, ofLink: true) else {
      return true
    }
    return directory.isPrivate(to: user)
  }

  /// The permissions with which a daemon makes the directory of a path; nil if it is not its own to
  /// make.
  package func mode(ofDirectoryOf path: String) -> UInt32? {
    if path == own { return 0o700 }
    return path == machine && user == 0 ? 0o755 : nil
  }

  /// Make the directory of a path on which a daemon will listen, if it is missing, and its own to make.
  /// Throws if it is to be closed to others and is not. Errors of the system show when the daemon
  /// listens.
  package func makeDirectory(of path: String) throws(SocketPath.Unsafe) {
    guard let mode = mode(ofDirectoryOf: path) else { return }
    let directory = SocketPlace(path).directory
    // The umask may remove permissions that clients need.
    if mkdir(directory, mode) == 0 { chmod(directory, mode) }
    if !isTrusted(path) { throw SocketPath.Unsafe(directory: directory) }
  }

  /// Whether this user can make a socket in a directory, after making that if it is root.
  private static func mayServe(at path: String, _ user: UInt32) -> Bool {
    let directory = SocketPlace(path).directory
    if FileStatus(directory) != nil { return access(directory, W_OK | X_OK) == 0 }
    return user == 0 && access(SocketPlace(directory).directory, W_OK | X_OK) == 0
  }
}

/// What the system says of a file.
struct FileStatus {
  private let status: stat

  /// Nil if there is no such file, or one that this user may not look at.
  init?(_ path: String, ofLink: Bool = false) {
    var status = stat()
    guard (ofLink ? lstat(path, &status) : stat(path, &status)) == 0 else { return nil }
    self.status = status
  }

  var isDirectory: Bool { status.st_mode & S_IFMT == S_IFDIR }
  var isSocket: Bool { status.st_mode & S_IFMT == S_IFSOCK }
  var owner: UInt32 { status.st_uid }

  /// Whether this is a directory in which only one user can do anything.
  func isPrivate(to user: UInt32) -> Bool {
    isDirectory && owner == user && status.st_mode & 0o077 == 0
  }
}
