internal import Glibc

/// Standard input, output and error: descriptors 0, 1 and 2.
package enum StandardStreams {
  /// Opens the null device on those that are closed, so that no socket or file that is opened later
  /// gets their number and is taken for them.
  ///
  /// The null device is opened in the other direction, so that using a closed one still fails with
  /// `EBADF`. Call it first of all.
  package static func occupy() {
    for descriptor in STDIN_FILENO...STDERR_FILENO {
      guard fcntl(descriptor, F_GETFD) < 0, errno == EBADF else { continue }
      // The lowest free number is given, and all below are in use.
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

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
