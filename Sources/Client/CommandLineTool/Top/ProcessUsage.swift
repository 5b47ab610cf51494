import Files
import Glibc
import SystemPackage
import Values

/// The memory and the processor's time of a process, from `/proc`.
struct ProcessUsage: Sendable, Equatable {
  /// The name of its program, as far as the system keeps it: 15 bytes.
  var name: String
  var residentBytes: UInt64
  /// Processor time since the process began, in seconds.
  var seconds: Double

  init(name: String, residentBytes: UInt64, seconds: Double) {
    self.name = name
    self.residentBytes = residentBytes
    self.seconds = seconds
  }

  /// The usage of the daemon that a status is of; nil if its process cannot be told for certain.
  ///
  /// In a container the daemon has another number than here, where it is perhaps another process's:
  /// so the process must have begun when the daemon says that it did.
  init?(of status: Value) {
    guard let pid = status.child("pid")?.number, let uptime = status.child("uptimeMs")?.number,
      let line = Self.text("/proc/\(pid)/stat"), let began = Self.began(line)
    else { return nil }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    let machine = Self.seconds(of: CLOCK_BOOTTIME)
    // A daemon reads its journal before it begins to count, and does not while the machine sleeps.
    let late = 60 + machine - Self.seconds(of: CLOCK_MONOTONIC)
    guard -2...late ~= machine - began / ticks - Double(uptime) / 1000 else { return nil }
    self.init(stat: line, ticks: ticks, page: UInt64(getpagesize()))
  }

  /// The usage in a line of `/proc/PID/stat`.
  init?(stat line: String, ticks: Double, page: UInt64) {
    let fields = Self.fields(line)
    guard fields.count > 21, let start = line.firstIndex(of: "("),
      let end = line.lastIndex(of: ")"), let user = Double(fields[11]),
      let system = Double(fields[12]),
      let pages = UInt64(fields[21]), ticks > 0
    else { return nil }
    self.init(
      name: String(line[line.index(after: start)..<end]), residentBytes: pages * page,
      seconds: (user + system) / ticks)
  }

  /// The fields behind the name, which is in parentheses and may contain anything.
  private static func fields(_ line: String) -> [Substring] {
    guard let end = line.lastIndex(of: ")") else { return [] }
    return line[line.index(after: end)...].split { $0 == " " || $0 == "\n" }
  }

  /// When the process began, in ticks since the machine did.
  private static func began(_ line: String) -> Double? {
    let fields = fields(line)
    return fields.count > 19 ? Double(fields[19]) : nil
  }

  private static func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  private static func text(_ path: String) -> String? {
    guard let bytes = try? FileDescriptor.contents(of: path, limit: 4096) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}
