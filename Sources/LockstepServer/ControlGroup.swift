import Glibc

/// The process's place in the tree of control groups (version 2), whose limits on memory hold for it.
///
/// The files are those of the kernel's "Control Group v2" document, section "Memory".
struct ControlGroup {
  /// The group of the process, then those that it is in, up to the root.
  private let folders: [String]
  /// The swap that the machine has left.
  private let machineSwap: Int

  /// `membership` is what `/proc/self/cgroup` says; nil where there is no version 2.
  init?(membership: String, root: String = "/sys/fs/cgroup", machineSwap: Int? = nil) {
    let line = membership.split(separator: "\n").first { $0.hasPrefix("0::/") }
    guard let names = line?.dropFirst("0::/".count).split(separator: "/") else { return nil }
    // Of a group outside of our namespace there is nothing to be seen.
    if names.contains("..") { return nil }
    self.machineSwap = machineSwap ?? Self.freeMachineSwap
    folders = (0...names.count).reversed().map { depth in
      names[..<depth].reduce(root) { "\($0)/\($1)" }
    }
  }

  /// That of this process, as it is now.
  static var own: ControlGroup? {
    text("/proc/self/cgroup").flatMap { ControlGroup(membership: $0) }
  }

  /// How many bytes more the groups admit before the kernel kills for them; nil without a limit.
  ///
  /// What the kernel has cached of files counts as free, and so does the swap that a group may use: it
  /// takes those first. O(depth).
  var freeMemory: Int? { folders.compactMap(freeMemory).min() }

  private func freeMemory(_ folder: String) -> Int? {
    // "max" where there is no limit, and no file in the root or without the controller.
    guard let limit = Self.number(folder + "/memory.max"),
      let current = Self.number(folder + "/memory.current")
    else { return nil }
    var used = current
    for line in Self.text(folder + "/memory.stat")?.split(separator: "\n") ?? [] {
      let parts = line.split(separator: " ")
      guard parts.count == 2, parts[0] == "inactive_file" || parts[0] == "active_file",
        let cached = Int(parts[1]), cached >= 0
      else { continue }
      used = max(0, used - cached)
    }
    let (free, overflows) = max(0, limit - used).addingReportingOverflow(freeSwap(folder))
    return overflows ? .max : free
  }

  private func freeSwap(_ folder: String) -> Int {
    guard let current = Self.number(folder + "/memory.swap.current") else { return 0 }
    guard let limit = Self.number(folder + "/memory.swap.max") else { return machineSwap }
    return min(max(0, limit - current), machineSwap)
  }

  private static var freeMachineSwap: Int {
    let line = text("/proc/meminfo")?.split(separator: "\n").first { $0.hasPrefix("SwapFree:") }
    let words = line?.split(separator: " ") ?? []
    guard words.count == 3, let kilobytes = Int(words[1]), 0..<(1 << 50) ~= kilobytes else {
      return 0
    }
    return kilobytes << 10
  }

  private static func number(_ path: String) -> Int? {
    guard let text = text(path), let number = Int(text.prefix { $0 != "\n" }), number >= 0 else {
      return nil
    }
    return number
  }

  /// The files are small, and the kernel makes each in one piece.
  private static func text(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return String(unsafeUninitializedCapacity: 1 << 14) { bytes in
      max(0, read(descriptor, bytes.baseAddress, bytes.count))
    }
  }
}
