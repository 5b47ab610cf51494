import Glibc
import Testing

/// The most memory that a piece of work takes at a time, as jemalloc counts it.
enum AllocationPeak {
  /// Whether there is an allocator that counts: a sanitizer brings one of its own.
  static var isCounted: Bool {
    #if SANITIZED
      false
    #else
      true
    #endif
  }

  private typealias Control =
    @convention(c) (
      UnsafePointer<CChar>, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?,
      UnsafeMutableRawPointer?, Int
    ) -> Int32

  /// What this thread has at most allocated and not freed since the begin of the work.
  static func bytes(of work: () -> Void) throws -> Int {
    // Unsafe: jemalloc's `mallctl` has this type (jemalloc(3)).
    let control = unsafeBitCast(
      try #require(dlsym(nil, "mallctl"), "the tests' allocator is another"), to: Control.self)
    try #require(control("thread.peak.reset", nil, nil, nil, 0) == 0)
    work()
    var (peak, size) = (UInt64(0), MemoryLayout<UInt64>.size)
    try #require(control("thread.peak.read", &peak, &size, nil, 0) == 0)
    return Int(peak)
  }
}
