import ArgumentParser
import Documents
import Glibc
import Values

/// Prints the reports of several followers as a table.
struct Summarize: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print reports as a table.")

  @Argument(help: "Files with a report each.")
  var files: [String]

  private static let columns = [
    "label", "scope", "revision", "digest", "snapshots", "patches", "coalesced", "bytes", "p50",
    "p99", "equal",
  ]

  func run() throws {
    var rows = [Self.columns.map { $0.uppercased() }]
    for path in files { rows.append(try Self.row(path)) }
    let widths = Self.columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    for row in rows {
      let cells = zip(row, widths).map { cell, width in
        cell + String(repeating: " ", count: width - cell.count)
      }
      print(cells.joined(separator: "  "))
    }
  }

  private static func row(_ path: String) throws -> [String] {
    guard let file = fopen(path, "re") else { throw ValidationError("cannot read \(path)") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    bytes.removeSubrange(fread(&bytes, 1, bytes.count, file)...)
    let report = try JSON.parse(bytes)
    return columns.map { name in
      switch report.value(at: [.text(name)]) {
      case .text(let text)?: return text.isEmpty && name == "scope" ? "''" : text
      case .integer(let number)?: return String(number)
      case .bool(let flag)?: return flag ? "yes" : "NO"
      default: return "-"
      }
    }
  }
}
