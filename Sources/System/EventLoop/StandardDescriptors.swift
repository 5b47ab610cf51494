internal import Glibc

/// The descriptors 0, 1 and 2, which libraries take for input, output and errors whatever they are.
public enum StandardDescriptors {
  /// Open the null device on those that are closed, so that no socket, file or loop gets their
  /// numbers and is written to as if it were a terminal.
  ///
  /// They are opened in the wrong direction, as glibc does for set-user-ID programs: reading input
  /// and writing output still fail with `EBADF`. Call it first in a program, before anything opens
  /// a descriptor and before there are other threads.
  public static func open() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      let mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY
      // The lowest free number is this one. Without a null device, as in an empty root directory,
      // any other unusable descriptor occupies the number as well.
      if Glibc.open("/dev/null", mode) < 0 { _ = Glibc.open("/", pathOnly) }
    }
  }

  /// `O_PATH`, which Glibc's module map leaves out.
  private static let pathOnly: Int32 = 0o10000000
}
