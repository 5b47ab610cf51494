import Glibc
import Values
import Wire

/// Draws `/proc` on a terminal, always in the same place; otherwise prints one line a second.
struct Table {
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  private var lastLine: Int64 = 0
  private var height = 0

  mutating func show(_ proc: Value, _ position: Position?, _ latency: Int64) {
    if isTerminal {
      draw(lines(proc, position, latency))
    } else if MonotonicClock.nanoseconds() - lastLine > 1_000_000_000 {
      lastLine = MonotonicClock.nanoseconds()
      write(summary(proc, position, latency) + "\n")
    }
  }

  private mutating func draw(_ lines: [String]) {
    var text = height > 0 ? "\u{1b}[\(height)A" : ""
    for line in lines { text += "\u{1b}[2K\(line)\n" }
    height = lines.count
    write(text)
  }

  private func summary(_ proc: Value, _ position: Position?, _ latency: Int64) -> String {
    "table: revision \(position?.revision ?? 0), sample \(number(proc, ["samples"])), "
      + "\(number(proc, ["memory", "MemAvailable"]) / 1024) MB available, "
      + "\(latency / 1000) µs old"
  }

  private func lines(_ proc: Value, _ position: Position?, _ latency: Int64) -> [String] {
    var lines = [summary(proc, position, latency), "      PID  RESIDENT KB  PROCESS"]
    if case .array(let processes)? = proc.value(at: ["processes"]) {
      for process in processes.prefix(8) {
        guard case .text(let name)? = process.value(at: ["name"]) else { continue }
        lines.append(
          right(number(process, ["pid"]), 9) + right(number(process, ["residentKB"]), 13)
            + "  " + String(name.unicodeScalars.lazy.map { $0.value < 32 ? "?" : Character($0) }))
      }
    }
    return lines
  }

  private func number(_ value: Value, _ path: Path) -> Int64 {
    if case .integer(let number)? = value.value(at: path) { number } else { 0 }
  }

  private func right(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: " ", count: max(0, width - digits.count)) + digits
  }

  private func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }
}
