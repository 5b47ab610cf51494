import CLockstep
import Glibc
import Values

extension String {
  /// The text of a C string.
  init(c pointer: UnsafePointer<CChar>?) throws(Failure) {
    guard let pointer else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    guard let text = String(validatingCString: pointer) else { throw Failure(LOCKSTEP_ERROR_UTF8) }
    self = text
  }
}

extension Path {
  /// The path of a JSON Pointer; NULL is the root.
  init(c pointer: UnsafePointer<CChar>?) throws(Failure) {
    guard let pointer, pointer.pointee != 0 else {
      self.init()
      return
    }
    guard let path = Path(pointer: try String(c: pointer)) else {
      throw Failure(LOCKSTEP_ERROR_PATH)
    }
    self = path
  }
}

/// A text without characters, for as long as the library is loaded.
var emptyText: UnsafePointer<CChar> {
  let text: StaticString = ""
  return UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

/// Texts and bytes that callers may read until all of them are released together.
struct CTexts: ~Copyable {
  private var pointers: [UnsafeMutableRawPointer] = []

  /// A copy, with a zero byte behind it.
  mutating func copy(_ text: String) -> UnsafePointer<CChar> {
    var text = text
    let copy = text.withUTF8 { Self.allocate(UnsafeRawBufferPointer($0)) }
    pointers.append(copy)
    return UnsafePointer(copy.assumingMemoryBound(to: CChar.self))
  }

  mutating func releaseAll() {
    for pointer in pointers { free(pointer) }
    pointers.removeAll(keepingCapacity: true)
  }

  deinit { for pointer in pointers { free(pointer) } }

  /// A copy that `free` releases, with a zero byte behind it.
  static func allocate(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count + 1)
    copy.copyMemory(from: bytes)
    copy[bytes.count] = 0
    // Not empty, so it has an address.
    return copy.baseAddress.unsafelyUnwrapped
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Memory of the C library's `malloc`.
  fileprivate static func allocate(byteCount: Int) -> UnsafeMutableRawBufferPointer {
    guard let memory = malloc(byteCount) else {
      // As the Swift runtime does.
      abort()
    }
    return UnsafeMutableRawBufferPointer(start: memory, count: byteCount)
  }
}
