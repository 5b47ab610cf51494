internal import Glibc

/// What this user can do at a socket's path, so that the advice in messages works.
package struct SocketPlace: Sendable {
  package let path: String

  package init(_ path: String) { self.path = path }

  /// The directory that the socket is in.
  package var directory: String { Self.parent(of: path) }

  /// Whether the directory exists.
  package var hasDirectory: Bool { FileStatus(directory)?.isDirectory == true }

  /// Whether this user can serve here, after making the directory if it is missing.
  package var isServable: Bool {
    var ancestor = directory
    while FileStatus(ancestor) == nil, ancestor != Self.parent(of: ancestor) {
      ancestor = Self.parent(of: ancestor)
    }
    return FileStatus(ancestor)?.isDirectory == true && access(ancestor, W_OK | X_OK) == 0
      && path.utf8.count <= SocketPath.limit
  }

  /// Whether a daemon of this user makes the directory by itself.
  package var makesDirectory: Bool { StandardPlaces().mode(ofDirectoryOf: path) != nil }

  /// A path where this user can serve, to advise when it cannot serve here.
  package static var alternative: SocketPlace {
    // Where clients look by themselves, unless a variable names this one.
    let standard = StandardPlaces { name in
      name == "LOCKSTEP_SOCKET" ? nil : getenv(name).map { String(cString: $0) }
    }
    if standard.mayServe { return SocketPlace(standard.forDaemon) }
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
}
