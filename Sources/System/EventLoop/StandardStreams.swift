internal import Glibc

/// Standard input, output and error: descriptors 0, 1 and 2, which libraries take for these whatever
/// they are.
package enum StandardStreams {
  /// Open the null device on those that are closed, so that no socket, file or loop gets their
  /// numbers and is written to as if it were a terminal.
  ///
  /// They are opened in the wrong direction, as glibc does for set-user-ID programs: reading input
  /// and writing output still fail with `EBADF`. Call it first in a program, before anything opens
  /// a descriptor and before there are other threads.
  package static func openClosed() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      let mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY
      // The lowest free number is this one. Without a null device, as in an empty root directory,
      // any other unusable descriptor occupies the number as well.
      if open("/dev/null", mode) < 0 { _ = open("/", pathOnly) }
    }
  }

  /// `O_PATH`, which Glibc's module map leaves out.
  private static let pathOnly: Int32 = 0o10000000

  /// Write all bytes, and block while the descriptor accepts no more. Returns 0, or an `errno`
  /// value.
  package static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
      var rest = UnsafeRawBufferPointer(buffer)
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
        if count >= 0 {
          rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        } else if errno == EAGAIN {
          var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&request, 1, -1)
        } else if errno != EINTR {
          return errno
        }
      }
      return 0
    }
  }
}
