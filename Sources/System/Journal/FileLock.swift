import Glibc

/// An exclusive lock on a file that is there for it alone, and has the number of the process that holds
/// it. The kernel releases it when the process has ended, and what it was just starting runs.
package struct FileLock: ~Copyable {
  /// The reason that there is no lock.
  package enum Failure: Error {
    case file(OwnFile.Failure)
    /// Another one has it. `pid`: the process, if its number can be read.
    case held(pid: Int32?)
  }

  private let descriptor: Int32

  /// Lock a file, which is made if it is missing. Does not wait. Some system calls, and a small write.
  package init(_ path: String) throws(Failure) {
    let descriptor: Int32
    do throws(OwnFile.Failure) {
      descriptor = try OwnFile.open(path)
    } catch {
      throw .file(error)
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let holder = Self.pid(in: descriptor)
      close(descriptor)
      throw .held(pid: holder)
    }
    _ = ftruncate(descriptor, 0)
    let text = Array("\(getpid())\n".utf8)
    _ = pwrite(descriptor, text, text.count, 0)
    self.descriptor = descriptor
  }

  deinit { Self.release(descriptor) }

  /// Release the lock of a descriptor, and close it. Closing alone would not do: a program that is being
  /// started has a copy of the descriptor until it runs, and with it the lock.
  package static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private static func pid(in descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes.prefix { $0 >= 0x30 && $0 <= 0x39 }, as: UTF8.self))
  }
}
