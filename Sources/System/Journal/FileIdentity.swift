import Glibc

/// Tells a file from any other that may be at its path later.
package struct FileIdentity: Equatable, Sendable {
  private let (device, inode): (UInt64, UInt64)

  /// The file at a path, which is not followed if it is a symbolic link; nil if there is none. One
  /// system call.
  package init?(_ path: String) {
    var status = stat()
    // A text that is handed on as it is, is copied first.
    guard path.withCString({ lstat($0, &status) }) == 0 else { return nil }
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }
}
