import EventLoop
import Glibc

enum StandardOutput {
  /// Write all bytes. Ends the process quietly when the reader has closed the pipe.
  static func write(_ bytes: [UInt8]) throws(Failure) {
    switch StandardStreams.write(bytes, to: STDOUT_FILENO) {
    case 0: return
    case EPIPE: exit(ExitStatus.done.rawValue)
    case EBADF: throw Failure(.unwritten, "cannot write to standard output: it is closed.")
    case let error:
      throw Failure(
        .unwritten, "cannot write to standard output: \(String(cString: strerror(error))).")
    }
  }

  /// End the process quietly as soon as the reader closes the pipe, even if nothing is written.
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
