/// Writes metrics in the text format of OpenMetrics 1.0.
package enum OpenMetrics {
  package enum Kind: String, Sendable {
    case counter, gauge, summary
  }

  /// The last line of a text.
  package static let end = "# EOF\n"

  /// A family with one series, which has no labels.
  package static func family(
    _ name: String, _ kind: Kind, _ value: some FixedWidthInteger
  ) -> String {
    heading(name, kind) + series(name, kind, value: "\(value)")
  }

  /// The line that begins a family. Its series follow.
  package static func heading(_ name: String, _ kind: Kind) -> String {
    "# TYPE \(name) \(kind.rawValue)\n"
  }

  /// The lines of a series: its value, or, of a summary, its count and then its value, the sum.
  package static func series(
    _ name: String, _ kind: Kind, labels: String = "", value: String, count: UInt64 = 0
  ) -> String {
    switch kind {
    case .counter: "\(name)_total\(labels) \(value)\n"
    case .gauge: "\(name)\(labels) \(value)\n"
    case .summary: "\(name)_count\(labels) \(count)\n\(name)_sum\(labels) \(value)\n"
    }
  }

  /// The labels of a series, in their order.
  package static func labels(_ pairs: [(String, String)]) -> String {
    let labels = pairs.map { "\(name($0.0))=\"\(escaped($0.1))\"" }
    return labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
  }

  /// A valid name: every character that a name may not have becomes `_`.
  package static func name(_ text: String) -> String {
    String(
      text.unicodeScalars.map { scalar in
        let isAllowed =
          scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
        return isAllowed || scalar == "_" ? Character(scalar) : "_"
      })
  }

  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
