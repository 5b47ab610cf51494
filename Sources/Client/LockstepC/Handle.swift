import CLockstep
import Synchronization

/// What a `lockstep_connection *` points to.
///
/// The memory of a handle is never returned to the system, but used for another connection, so that a
/// connection that was freed is recognised.
struct Handle {
  private var mark: UInt64
  /// The generation of the values that are valid now.
  var generation: UInt64
  private var object: Unmanaged<ClientConnection>

  private static var liveMark: UInt64 { 0x6c6f_636b_7374_6570 }

  private init(_ object: ClientConnection) {
    mark = Self.liveMark
    generation = 0
    self.object = Unmanaged.passRetained(object)
  }

  // MARK: Making and releasing

  /// A handle that keeps the connection alive.
  static func make(_ object: ClientConnection) -> UnsafeMutablePointer<Handle> {
    let pointer =
      unused.withLock { $0.takeOldest() }
      ?? UnsafeMutablePointer<Handle>.allocate(capacity: 1)
    pointer.initialize(to: Handle(object))
    return pointer
  }

  /// Mark the handle as freed, and release its connection.
  static func release(_ pointer: UnsafeMutablePointer<Handle>) {
    let object = pointer.pointee.object
    pointer.pointee.mark = 0
    pointer.pointee.generation = 0
    object.release()
    unused.withLock { $0.append(pointer) }
  }

  /// Handles that were freed, the oldest first.
  private struct Unused: @unchecked Sendable {
    private var pointers: [UnsafeMutablePointer<Handle>] = []

    /// So many are kept back, so that a mistake is noticed for longer.
    private static let reserve = 16

    mutating func append(_ pointer: UnsafeMutablePointer<Handle>) { pointers.append(pointer) }

    mutating func takeOldest() -> UnsafeMutablePointer<Handle>? {
      pointers.count > Self.reserve ? pointers.removeFirst() : nil
    }
  }

  private static let unused = Mutex(Unused())

  // MARK: Resolving

  /// The handle at a pointer that a caller gave.
  @inline(__always)
  static func resolve(
    _ pointer: OpaquePointer?
  ) throws(Failure) -> UnsafeMutablePointer<Handle> {
    guard let pointer else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    let handle = UnsafeMutablePointer<Handle>(pointer)
    guard handle.pointee.mark == liveMark else { throw Failure(LOCKSTEP_ERROR_HANDLE) }
    return handle
  }

  var connection: ClientConnection { object.takeUnretainedValue() }
}

/// Run a function of the interface with the connection that a caller named: returns its result, or the
/// error that it throws, and keeps the error's message.
func with(
  _ pointer: OpaquePointer?, _ body: (ClientConnection) throws(Failure) -> Int32
) -> Int32 {
  do throws(Failure) {
    let connection = try Handle.resolve(pointer).pointee.connection
    do throws(Failure) {
      return try body(connection)
    } catch {
      connection.setMessage(error.message)
      return error.code
    }
  } catch {
    return error.code
  }
}
