internal import Glibc

/// An error of the operating system, with the operation that failed.
public struct SystemError: Error, Equatable, CustomStringConvertible {
  /// The `errno` value, positive.
  public let code: Int32
  /// The attempted operation, with its object: `send to /run/systemd/notify`.
  public let operation: String

  /// An error for `code`, a positive `errno` value, met during `operation`.
  public init(code: Int32, operation: String) {
    self.code = code
    self.operation = operation
  }

  /// A sentence for people: `send to /run/systemd/notify: Connection refused`.
  public var description: String {
    // 128 bytes hold every message of the C library; a longer one would be cut.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      buffer.initialize(repeating: 0)
      guard let text = buffer.baseAddress, strerror_r(code, text, buffer.count) == 0 else {
        return "\(operation): error \(code)"
      }
      return "\(operation): \(String(cString: text))"
    }
  }
}

/// Throws `errno` if `status`, the result of a system call, is an error.
func check(_ status: Int32, _ operation: @autoclosure () -> String) throws(SystemError) {
  if status < 0 {
    let code = errno
    throw SystemError(code: code, operation: operation())
  }
}
