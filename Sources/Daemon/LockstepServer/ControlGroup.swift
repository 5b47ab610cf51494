import DaemonCore
import Glibc

/// The process's place in a tree of control groups, whose memory limits apply to it.
///
/// The files are those of the kernel's documents "Control Group v2", section "Memory", and "Memory
/// Resource Controller" for version 1. A machine may have both trees; memory is in one of them.
struct ControlGroup {
  enum Version { case one, two }

  /// The group of the process, then those that it is in, up to the root.
  private let folders: [String]
  private let version: Version
  private let root: String
  /// The machine's free swap in bytes; nil if it is to be asked for where a limit applies.
  private let machineSwap: Int?

  /// `membership` is the text of `/proc/self/cgroup`; nil if it has no group of this version.
  init?(membership: String, _ version: Version = .two, root: String, machineSwap: Int? = nil) {
    let path = membership.split(separator: "\n").lazy.compactMap { Self.path($0, version) }.first
    guard let names = path?.split(separator: "/") else { return nil }
    // The files of a group outside our namespace cannot be seen.
    if names.contains("..") { return nil }
    self.version = version
    self.root = root
    self.machineSwap = machineSwap
    folders = (0...names.count).reversed().map { depth in
      names[..<depth].reduce(root) { "\($0)/\($1)" }
    }
  }

  /// The path in a line `number:controllers:path`.
  private static func path(_ line: Substring, _ version: Version) -> Substring? {
    let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].hasPrefix("/") else { return nil }
    switch version {
    case .two: return line.hasPrefix("0::") ? parts[2] : nil
    case .one: return parts[1].split(separator: ",").contains("memory") ? parts[2] : nil
    }
  }

  /// The control groups of this process, as they are now.
  static var all: [ControlGroup] {
    guard let membership = SmallFile.text("/proc/self/cgroup") else { return [] }
    return [
      ControlGroup(membership: membership, .two, root: "/sys/fs/cgroup"),
      ControlGroup(membership: membership, .one, root: "/sys/fs/cgroup/memory"),
    ].compactMap(\.self)
  }

  /// The limits of the groups, with how many bytes more each allows before the kernel kills a
  /// process, or slows this one down.
  ///
  /// The kernel's file cache counts as free, and so does the swap that a group may use: the kernel
  /// takes those first. O(depth).
  var limits: [MemoryReading] {
    switch version {
    case .two:
      folders.flatMap { folder in
        ["memory.max", "memory.high"].compactMap { name in
          reading(folder, name, current: "memory.current", cached: "", swap: freeSwap(folder))
        }
      }
    case .one:
      folders.compactMap { folder in
        // The limit of memory and swap together is another one, with its own file.
        reading(
          folder, "memory.limit_in_bytes", current: "memory.usage_in_bytes", cached: "total_",
          swap: 0)
      }
    }
  }

  /// The bytes that the nearest limit leaves; nil without a limit.
  var freeMemory: Int? { limits.map(\.free).min() }

  private func reading(
    _ folder: String, _ name: String, current: String, cached prefix: String,
    swap: @autoclosure () -> Int
  ) -> MemoryReading? {
    // Without a limit, the file holds "max", or more than any machine has. It does not exist in the
    // root or without the controller.
    guard let limit = SmallFile.number("\(folder)/\(name)"), limit < 1 << 60,
      let current = SmallFile.number("\(folder)/\(current)")
    else { return nil }
    var used = current
    for line in SmallFile.text(folder + "/memory.stat")?.split(separator: "\n") ?? [] {
      let parts = line.split(separator: " ")
      guard parts.count == 2,
        parts[0] == prefix + "inactive_file" || parts[0] == prefix + "active_file",
        let cached = Int(parts[1]), cached >= 0
      else { continue }
      used = max(0, used - cached)
    }
    let (free, overflows) = max(0, limit - used).addingReportingOverflow(swap())
    let group = folder == root ? "/" : String(folder.dropFirst(root.count))
    return MemoryReading(
      free: overflows ? .max >> 2 : free, limit: limit,
      name: "\(name) of the control group \(group)")
  }

  private func freeSwap(_ folder: String) -> Int {
    guard let current = SmallFile.number(folder + "/memory.swap.current") else { return 0 }
    let machineSwap = machineSwap ?? Self.freeMachineSwap
    guard let limit = SmallFile.number(folder + "/memory.swap.max") else { return machineSwap }
    return min(max(0, limit - current), machineSwap)
  }

  private static var freeMachineSwap: Int {
    let line = SmallFile.text("/proc/meminfo")?.split(separator: "\n").first {
      $0.hasPrefix("SwapFree:")
    }
    let words = line?.split(separator: " ") ?? []
    guard words.count == 3, let kilobytes = Int(words[1]), 0..<(1 << 50) ~= kilobytes else {
      return 0
    }
    return kilobytes << 10
  }
}
