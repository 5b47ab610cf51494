import Glibc

/// Writing to descriptors, whole.
enum Descriptor {
  /// Write all bytes. Returns 0, or the error's number.
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
        if count >= 0 {
          rest = rest.dropFirst(count)
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

extension Slice where Base == UnsafeRawBufferPointer {
  fileprivate var baseAddress: UnsafeRawPointer? {
    UnsafeRawBufferPointer(rebasing: self).baseAddress
  }
}

enum StandardOutput {
  /// Write all bytes. Ends the process quietly when their reader has gone.
  static func write(_ bytes: [UInt8]) throws(Failure) {
    switch Descriptor.write(bytes, to: STDOUT_FILENO) {
    case 0: return
    case EPIPE: exit(ExitStatus.done.rawValue)
    case let error:
      throw Failure(
        .refused, "cannot write to standard output: \(String(cString: strerror(error))).")
    }
  }

  /// End the process quietly as soon as the reader of a pipe goes, even if nothing is written.
  static func endWithReader() {
    var status = stat()
    guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        var request = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        while poll(&request, 1, -1) < 1 {}
        exit(ExitStatus.done.rawValue)
      }, nil)
  }
}

enum StandardError {
  /// Say a sentence, in one line.
  static func say(_ message: String) { write("lockstep: \(message.escapingControls)\n") }

  static func write(_ text: String) {
    _ = Descriptor.write(Array(text.utf8), to: STDERR_FILENO)
  }
}
