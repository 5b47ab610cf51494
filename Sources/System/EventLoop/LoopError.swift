internal import CLibuv

/// An error of the operating system, with the operation that failed.
public struct LoopError: Error, Equatable, CustomStringConvertible {
  /// The negative `errno` value, as libuv has it.
  public let code: Int32
  /// The attempted operation, with its object: `bind /run/lockstep.sock`.
  public let operation: String

  /// An error for `code`, a negative `errno` value, met during `operation`.
  public init(code: Int32, operation: String) {
    self.code = code
    self.operation = operation
  }

  /// The symbolic name: `EADDRINUSE`.
  public var name: String {
    Self.text { uv_err_name_r(code, $0, $1) }
  }

  /// A sentence for people: `bind /run/a.sock: address already in use (EADDRINUSE)`.
  public var description: String { "\(operation): \(reason)" }

  /// The reason alone, without the operation: `address already in use (EADDRINUSE)`.
  public var reason: String { "\(Self.text { uv_strerror_r(code, $0, $1) }) (\(name))" }

  private static func text(
    _ fill: (UnsafeMutablePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
  ) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      buffer.initialize(repeating: 0)
      _ = fill(buffer.baseAddress!, buffer.count)
      return String(cString: buffer.baseAddress!)
    }
  }
}

/// Throws `status`, the result of a libuv call, if it is an error.
func check(_ status: Int32, _ operation: @autoclosure () -> String) throws(LoopError) {
  if status < 0 { throw LoopError(code: status, operation: operation()) }
}
