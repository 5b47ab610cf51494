import Glibc
import Values

/// The kernel's data in `/proc`.
enum ProcFiles {
  /// Ticks of each core: user, system, idle.
  static func cpu() -> Value {
    object(
      lines("/proc/stat").compactMap { line in
        let fields = words(line)
        guard fields.count > 4, fields[0].hasPrefix("cpu"), fields[0] != "cpu" else { return nil }
        return (
          fields[0],
          ["user": number(fields[1]), "system": number(fields[3]), "idle": number(fields[4])]
        )
      })
  }

  /// Kilobytes, by the names of `/proc/meminfo`.
  static func memory() -> Value {
    let wanted = ["MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "Dirty"]
    return object(
      lines("/proc/meminfo").compactMap { line in
        let fields = words(line)
        guard fields.count > 1, let name = fields[0].split(separator: ":").first.map(String.init),
          wanted.contains(name)
        else { return nil }
        return (name, number(fields[1]))
      })
  }

  /// Sectors read and written of each disk.
  static func disks() -> Value {
    object(
      lines("/proc/diskstats").compactMap { line in
        let fields = words(line)
        guard fields.count > 9, !fields[2].hasPrefix("loop"), !fields[2].hasPrefix("ram") else {
          return nil
        }
        return (fields[2], ["read": number(fields[5]), "written": number(fields[9])])
      })
  }

  /// Bytes received and sent of each interface.
  static func network() -> Value {
    object(
      lines("/proc/net/dev").compactMap { line in
        let halves = line.split(separator: ":", maxSplits: 1)
        guard halves.count == 2 else { return nil }
        let fields = words(String(halves[1]))
        guard fields.count > 8, let name = words(String(halves[0])).first else { return nil }
        return (name, ["received": number(fields[0]), "sent": number(fields[8])])
      })
  }

  /// The processes that use the most memory, largest first.
  static func largestProcesses(_ count: Int) -> Value {
    var processes: [(pid: Int64, name: String, pages: Int64)] = []
    guard let directory = opendir("/proc") else { return [] }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let pid = Int64(name), let process = process(pid) else { continue }
      processes.append(process)
    }
    processes.sort { ($0.pages, $1.pid) > ($1.pages, $0.pid) }
    return .array(
      TreeArray(
        processes.prefix(count).map { process in
          [
            "pid": .integer(process.pid), "name": .text(process.name),
            "residentKB": .integer(process.pages * 4),
          ] as Value
        }))
  }

  private static func process(_ pid: Int64) -> (Int64, String, Int64)? {
    // The name is in parentheses and may contain anything, even parentheses.
    guard let line = lines("/proc/\(pid)/stat").first, let open = line.firstIndex(of: "("),
      let close = line.lastIndex(of: ")")
    else { return nil }
    let fields = words(String(line[line.index(after: close)...]))
    guard fields.count > 21, let pages = Int64(fields[21]) else { return nil }
    return (pid, String(line[line.index(after: open)..<close]), pages)
  }

  // MARK: Reading

  private static func lines(_ path: String) -> [String] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&part, 1, part.count, file), count > 0 {
      bytes.append(contentsOf: part[..<count])
    }
    return bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func words(_ line: String) -> [String] {
    line.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  private static func number(_ text: String) -> Value { .integer(Int64(text) ?? 0) }

  private static func object(_ members: [(String, Value)]) -> Value {
    var entries = TrieMap<String, Value>()
    for (name, value) in members { entries.updateValue(value, forKey: name) }
    return .object(entries)
  }
}
