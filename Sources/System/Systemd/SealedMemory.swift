internal import CLinux
internal import Files
internal import Glibc
internal import SystemPackage

/// Memory with a descriptor, sealed against any change: memfd_create(2).
enum SealedMemory {
  // linux/memfd.h and linux/fcntl.h, which Glibc's headers show to GNU programs only.
  private static let closeOnExec: UInt32 = 1
  private static let allowSealing: UInt32 = 2
  private static let noExecution: UInt32 = 8
  private static let addSeals: Int32 = 1033
  private static let getSeals: Int32 = 1034
  /// `F_SEAL_SEAL`, `F_SEAL_SHRINK`, `F_SEAL_GROW` and `F_SEAL_WRITE`.
  private static let seals: Int32 = 1 | 2 | 4 | 8

  /// A descriptor of new memory that holds these bytes. No child inherits it.
  static func make(
    _ name: String, _ parts: some Sequence<[UInt8]>
  ) throws(SystemError) -> Int32 {
    let operation = "make the memory \"\(name)\""
    // Without execution, as vm.memfd_noexec may demand; kernels before 6.3 do not know the flag.
    var descriptor = memfd_create(name, closeOnExec | allowSealing | noExecution)
    if descriptor < 0 && errno == EINVAL {
      descriptor = memfd_create(name, closeOnExec | allowSealing)
    }
    try check(descriptor, operation)
    do throws(SystemError) {
      for part in parts { try write(part, descriptor, operation) }
      try check(fcntl(descriptor, addSeals, seals), "seal the memory \"\(name)\"")
    } catch {
      close(descriptor)
      throw error
    }
    return descriptor
  }

  private static func write(
    _ bytes: [UInt8], _ descriptor: Int32, _ operation: String
  ) throws(SystemError) {
    do throws(Errno) { try FileDescriptor(rawValue: descriptor).write(bytes) } catch {
      throw SystemError(code: error.rawValue, operation: operation)
    }
  }

  /// Whether a descriptor is memory that can no longer be changed. Files of other kinds have no
  /// seals, or not these.
  static func isSealed(_ descriptor: Int32) -> Bool {
    let found = fcntl(descriptor, getSeals)
    return found >= 0 && found & seals == seals
  }
}
