import Glibc

/// The memory that the process may still have.
enum Memory {
  /// Whether there are so many bytes more, at this moment: they are asked for, and given back
  /// untouched. Swift ends the process that gets none, so what takes much asks first.
  ///
  /// It sees what the kernel refuses (`RLIMIT_AS`, `RLIMIT_DATA`, more than the machine has), and what
  /// the limit of a control group (`MemoryMax=`) leaves: behind that one the kernel kills. O(1).
  static func isThere(_ bytes: Int) -> Bool {
    // Little is always tried: there is no telling what the allocator has in hand.
    guard bytes > 1 << 20 else { return true }
    if let free = ControlGroup.own?.freeMemory, free < bytes { return false }
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { return false }
    munmap(memory, bytes)
    return true
  }
}
