import CAllocator
import CLinux
import DaemonCore
import Glibc

/// The memory that the process may still take.
enum Memory {
  /// The nearest limit, with how much more the process may take before the kernel refuses it or
  /// kills a process; nil if no limit is known. O(the depth of its control group).
  static var reading: MemoryReading? { readings().min { $0.free < $1.free } }

  /// Whether the nearest limit leaves less than a third of itself, and the allocator keeps enough free
  /// memory to be worth that the next allocations ask the system for it again.
  static var mustTrim: Bool {
    let nearest = readings(reusingFree: false).min { $0.free < $1.free }
    guard let nearest, nearest.free < nearest.limit / 3 else { return false }
    return lockstep_allocator_unused() > min(nearest.limit / 64, 16 << 20)
  }

  /// Every limit that is known to hold, with what it leaves.
  static func readings(reusingFree: Bool = true) -> [MemoryReading] {
    ControlGroup.all.flatMap(\.limits) + ProcessLimit.all(reusingFree: reusingFree)
      + [machine].compactMap(\.self)
  }

  /// The limit of the machine.
  private static var machine: MemoryReading? {
    MachineMemory.fromProc ?? MachineMemory.fromNodes("/sys/devices/system/node")
  }

  /// Whether this many more bytes can be allocated now. Swift ends a process whose allocation fails,
  /// so code that takes much memory asks first.
  ///
  /// The limits beyond which the kernel refuses (`RLIMIT_AS`, `RLIMIT_DATA`) or kills (a control
  /// group's, `MemoryMax=`) are read. What the machine has is tried: the bytes are mapped, and unmapped
  /// untouched; but not where a limit of the process would leave less than as much, because other
  /// threads could not allocate meanwhile. O(1).
  static func canAllocate(_ bytes: Int) -> Bool {
    // A small allocation is always tried: the allocator's own free memory is unknown.
    guard bytes > 1 << 20 else { return true }
    let own = ProcessLimit.all(reusingFree: false)
    let limits = ControlGroup.all.flatMap(\.limits) + own
    if let free = limits.map(\.free).min(), free < bytes { return false }
    if let free = own.map(\.free).min(), free - bytes < bytes { return true }
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { return false }
    munmap(memory, bytes)
    return true
  }

  // MARK: The allocator

  /// Return the allocator's free memory to the system. O(its pages), some milliseconds for a
  /// hundred megabytes, during which other threads can allocate. Where it is in too many places it
  /// stays, and counts as taken.
  static func trim() { _ = lockstep_allocator_trim() }
}

/// The memory of the machine, with what the kernel would reclaim.
enum MachineMemory {
  /// As the kernel estimates it; nil where it is not shown (`ProcSubset=pid`, as in our units).
  static var fromProc: MemoryReading? {
    let lines = Lines("/proc/meminfo")
    guard let free = lines.bytes("MemAvailable:"), let all = lines.bytes("MemTotal:") else {
      return nil
    }
    return MemoryReading(
      free: free + (lines.bytes("SwapFree:") ?? 0), limit: all, name: "the machine")
  }

  /// As nearly the same as can be without `/proc`: what is free, and the page cache and reclaimable slabs
  /// of the NUMA nodes, less a fiftieth of all, for what the kernel reserves. Nil if it cannot be found out,
  /// as with a kernel without NUMA.
  ///
  /// The kernel's own estimate: `si_mem_available` in `mm/show_mem.c`.
  static func fromNodes(_ folder: String) -> MemoryReading? {
    var machine = sysinfo()
    guard sysinfo(&machine) == 0, let cached = cached(folder) else { return nil }
    func bytes(_ units: UInt) -> Int {
      let (bytes, overflows) = units.multipliedReportingOverflow(by: UInt(machine.mem_unit))
      return overflows ? 1 << 60 : min(Int(clamping: bytes), 1 << 60)
    }
    let all = bytes(machine.totalram)
    let available = min(all, bytes(machine.freeram) + cached) - all / 50
    return MemoryReading(
      free: max(0, available) + bytes(machine.freeswap), limit: all, name: "the machine")
  }

  /// The bytes that the kernel can take back in the first 64 nodes; nil if there is none.
  private static func cached(_ folder: String) -> Int? {
    var cached: Int?
    for node in 0..<64 {
      let lines = Lines("\(folder)/node\(node)/meminfo")
      for name in ["Active(file):", "Inactive(file):", "SReclaimable:"] {
        guard let bytes = lines.bytes("Node \(node) \(name)") else { continue }
        cached = min((cached ?? 0) + bytes, 1 << 60)
      }
    }
    return cached
  }

  /// The lines of a file of names and kilobytes.
  private struct Lines {
    private let lines: [Substring.UTF8View]

    init(_ path: String) {
      // Bytes are split ten times as fast as characters, and this is done once a second.
      lines = SmallFile.text(path)?[...].utf8.split(separator: UInt8(ascii: "\n")) ?? []
    }

    /// The number behind a name, in bytes.
    func bytes(_ name: String) -> Int? {
      guard let line = lines.first(where: { $0.starts(with: name.utf8) }) else { return nil }
      let words = line.dropFirst(name.utf8.count).split(separator: UInt8(ascii: " "))
      guard words.count == 2, let kilobytes = Int(Substring(words[0])),
        0..<(1 << 50) ~= kilobytes
      else { return nil }
      return kilobytes << 10
    }
  }
}

/// A limit that holds for the process alone (`ulimit`, `LimitAS=`, `LimitDATA=`).
private enum ProcessLimit {
  /// The limits that are set, with what is left of each. The allocator's free memory counts as left if
  /// it is to be used again (`reusingFree`): most of it can be, but for no large block.
  static func all(reusingFree: Bool = true) -> [MemoryReading] {
    let limits = [
      (RLIMIT_AS, "the limit of the process's address space"),
      (RLIMIT_DATA, "the limit of the process's data"),
    ].map { (limit(of: $0), $1) }
    if limits.allSatisfy({ $0.0 == nil }) { return [] }
    // In pages: all of them, and the process's own writable ones.
    let fields = SmallFile.text("/proc/self/statm")?.split(separator: " ").map { Int($0) } ?? []
    guard fields.count > 5, let all = fields[0], let own = fields[5] else { return [] }
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let reusable = reusingFree ? Int(clamping: lockstep_allocator_unused() / 4 * 3) : 0
    return zip(limits, [all, own]).compactMap { limit, used in
      limit.0.map {
        MemoryReading(free: max(0, $0 - used * page) + reusable, limit: $0, name: limit.1)
      }
    }
  }

  /// The limit of a resource in bytes; nil if it is not limited.
  private static func limit(of resource: __rlimit_resource) -> Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0, limit.rlim_cur < 1 << 60
    else { return nil }
    return Int(limit.rlim_cur)
  }
}

/// Small files of the kernel, each read in one piece.
enum SmallFile {
  static func text(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return String(unsafeUninitializedCapacity: 1 << 14) { bytes in
      max(0, read(descriptor, bytes.baseAddress, bytes.count))
    }
  }

  /// The number in a file; nil if there is no file, or it holds "max".
  static func number(_ path: String) -> Int? {
    guard let text = text(path), let number = Int(text.prefix { $0 != "\n" }), number >= 0 else {
      return nil
    }
    return number
  }
}

extension Limits {
  /// Lower the limits to what the smallest of these allows, however much the others leave at
  /// present.
  mutating func fit(_ readings: [MemoryReading]) {
    if let least = readings.map(\.limit).min() { fit(memory: least) }
  }

  /// Lower the limits on what peers can make the daemon hold, where they exceed a share of its
  /// memory. Changes to the state are limited by the free memory (`MemoryReading`).
  mutating func fit(memory bytes: Int) {
    frameBytes = min(frameBytes, max(bytes / 8, 1 << 20))
    // Room for a frame of the largest kind.
    partialBytesPerUser = min(partialBytesPerUser, max(bytes / 8, frameBytes))
    // Room for a mirror of the whole state that reads slowly.
    unsentBytesPerUser = min(unsentBytesPerUser, max(bytes / 2, 1 << 20))
    journalQueueBytes = min(journalQueueBytes, max(bytes / 8, 1 << 20))
    historyBytes = min(historyBytes, bytes / 32)
    actionMemoryBytes = min(actionMemoryBytes, max(bytes / 4, 1 << 20))
  }
}
