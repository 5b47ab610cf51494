// Imported for `stat`, which its headers declare.
internal import CLibuv
internal import Glibc
internal import SocketPaths

/// What this user can do at a socket's path, so that the advice in messages works.
package struct SocketPlace: Sendable {
  package let path: String

  package init(_ path: String) { self.path = path }

  /// The directory that the socket is in.
  package var directory: String { Self.parent(of: path) }

  /// Whether the directory exists.
  package var hasDirectory: Bool { Self.isDirectory(directory) }

  /// Whether this user can serve here, after making the directory if it is missing.
  package var isServable: Bool {
    var ancestor = directory
    while !Self.exists(ancestor), ancestor != Self.parent(of: ancestor) {
      ancestor = Self.parent(of: ancestor)
    }
    return Self.isDirectory(ancestor) && access(ancestor, W_OK | X_OK) == 0
      && path.utf8.count <= SocketPath.limit
  }

  /// Whether a daemon of this user makes the directory by itself.
  package var makesDirectory: Bool { path == SocketPath.system && geteuid() == 0 }

  /// Make the directory as the system's units do, if the daemon should and it is missing.
  package func makeDirectory() {
    guard makesDirectory, mkdir(directory, 0o755) == 0 else { return }
    // The umask has removed permissions that clients need.
    chmod(directory, 0o755)
  }

  /// A path where this user can serve, to advise when it cannot serve here.
  package static var alternative: SocketPlace {
    if let home = getenv("HOME") {
      let place = SocketPlace(String(cString: home) + "/lockstep.sock")
      if place.path.hasPrefix("/"), place.hasDirectory, place.isServable { return place }
    }
    return SocketPlace("/tmp/lockstep-\(geteuid()).sock")
  }

  /// The path as one word of a shell command.
  package var word: String { Self.word(path) }

  /// A text as one word of a shell command: special characters are escaped with a backslash.
  package static func word(_ text: String) -> String {
    var word = ""
    for scalar in text.unicodeScalars {
      let isPlain =
        !scalar.isASCII || "/._-+:@%,=".unicodeScalars.contains(scalar)
        || scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
      if !isPlain { word += "\\" }
      word.unicodeScalars.append(scalar)
    }
    return word
  }

  private static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func exists(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0
  }

  private static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
