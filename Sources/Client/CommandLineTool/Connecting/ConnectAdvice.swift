import EventLoop
import Glibc
import SocketPaths

extension Failure {
  /// The failure to connect, with advice that works for this user on this machine.
  init(connectingTo path: String, _ error: LoopError) {
    self.init(
      error.isPermission ? .denied : .unreachable, ConnectAdvice(path: path).sentence(about: error))
  }
}

extension LoopError {
  fileprivate var isPermission: Bool { name == "EACCES" || name == "EPERM" }
}

/// Advice for a path at which no daemon serves.
struct ConnectAdvice {
  let place: SocketPlace
  /// The root of the file system when units are looked for.
  var root = ""
  /// The command with which this user starts the daemon.
  var daemon = ProgramPath.daemon
  /// The places that clients have looked at, if none was named: the path is the first.
  private let searched: [String]

  init(path: String, standard: StandardPlaces = StandardPlaces()) {
    place = SocketPlace(path)
    searched = standard.paths.count > 1 && standard.forClient == path ? standard.paths : []
  }

  func sentence(about error: LoopError) -> String {
    let path = place.path
    var status = stat()
    if stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK {
      return "\(path) is not a socket. Name the daemon's socket with --socket."
    }
    switch error.name {
    case "ENOENT":
      let places = searched.first == path ? searched : [path]
      return
        "no daemon serves at \(places.joined(separator: ", nor at ")): there is no such socket. "
        + "\(start)."
    case "ECONNREFUSED":
      return "no daemon serves at \(path): the socket is a leftover and nobody listens. \(start)."
    case "EACCES", "EPERM":
      return
        "may not connect to \(path): permission denied. The daemon's user and root may; others "
        + "if a policy lets them ('lockstepd --policy')."
    case "EPROTOTYPE":
      return "\(path) is a socket, but not a daemon's. Name the daemon's with --socket."
    case "ENOTDIR":
      return "no daemon serves at \(path): its directory is a file. Name the daemon's socket with "
        + "--socket."
    default: return "cannot connect to \(path): \(error.reason)."
    }
  }

  /// How to start a daemon, by a command that works for this user.
  var start: String {
    let another = "or name another socket with --socket"
    if let unit { return "Start it with 'systemctl start \(unit)', \(another)" }
    guard place.isServable || place.makesDirectory else {
      let other = SocketPlace.alternative.word
      return "Start one where you may, with '\(daemon) --socket \(other)', and look there with "
        + "'--socket \(other)' or LOCKSTEP_SOCKET=\(other)"
    }
    let command = searched.first == place.path ? daemon : "\(daemon) --socket \(place.word)"
    if place.hasDirectory || place.makesDirectory {
      return "Start one with '\(command)', \(another)"
    }
    let directory = SocketPlace.word(place.directory)
    return "Start one with 'mkdir --parents \(directory) && \(command)', \(another)"
  }

  /// The systemd unit that listens on the path; nil if systemd does not run or has no such unit.
  private var unit: String? {
    guard access(root + "/run/systemd/system", F_OK) == 0,
      place.directory == SocketPlace(SocketPath.system).directory,
      let name = place.path.split(separator: "/").last, name.hasSuffix(".sock")
    else { return nil }
    if place.path == SocketPath.system { return has("lockstepd.socket") ? "lockstepd.socket" : nil }
    return has("lockstep@.socket") ? "lockstep@\(name.dropLast(5)).socket" : nil
  }

  private func has(_ unit: String) -> Bool {
    ["/etc", "/usr/local/lib", "/usr/lib", "/lib"]
      .contains { access("\(root)\($0)/systemd/system/\(unit)", F_OK) == 0 }
  }
}

/// The paths of programs.
enum ProgramPath {
  /// The command that starts the daemon: its name if the shell finds it, else its path if it is
  /// beside this program.
  static var daemon: String {
    let name = "lockstepd"
    let path = getenv("PATH").map { String(cString: $0) } ?? ""
    let isInPath = path.split(separator: ":").contains { isProgram("\($0)/\(name)") }
    return isInPath ? name : beside(name).map(SocketPlace.word) ?? name
  }

  /// The path of a program in the folder of this one; nil if it is not there.
  static func beside(_ name: String) -> String? {
    guard let folder = ownFolder else { return nil }
    return isProgram("\(folder)/\(name)") ? "\(folder)/\(name)" : nil
  }

  /// Let a program take the place of this one: one that is beside it, or is found in the PATH. Returns only
  /// by throwing.
  static func become(_ name: String, _ arguments: [String]) throws(Failure) {
    let words = [name] + arguments
    var pointers = words.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    if let beside = beside(name) { execv(beside, &pointers) }
    execvp(name, &pointers)
    throw Failure(
      .absent,
      "'\(name)' is not installed: it is neither beside this program nor in the PATH.")
  }

  /// The folder of this program.
  private static var ownFolder: String? {
    guard let path = realpath("/proc/self/exe", nil) else { return nil }
    defer { free(path) }
    let text = String(cString: path)
    return text.lastIndex(of: "/").map { String(text[..<$0]) }
  }

  private static func isProgram(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && access(path, X_OK) == 0
  }
}
