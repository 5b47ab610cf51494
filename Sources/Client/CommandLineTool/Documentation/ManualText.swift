/// Help text as mdoc. Empty lines separate paragraphs; indented lines are a list if each has a term
/// and, after two spaces, its meaning, else an example; a line `HEADING:` begins a section.
struct ManualText {
  /// The text before the first section, each paragraph after a `.Pp`.
  private(set) var body: [String] = []
  private(set) var sections: [String: [String]] = [:]

  init(_ text: String) {
    var heading: String?
    for paragraph in Self.paragraphs(text) {
      var lines = paragraph[...]
      if let first = lines.first, first.hasSuffix(":"), first == first.uppercased() {
        heading = String(first.dropLast())
        lines = lines.dropFirst()
      }
      let roff = Self.roff(lines)
      if let heading {
        sections[heading, default: []] += roff
      } else {
        body += [".Pp"] + roff
      }
    }
  }

  private static func paragraphs(_ text: String) -> [[String]] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      .split { $0.isEmpty }.map(Array.init)
  }

  private static func roff(_ lines: ArraySlice<String>) -> [String] {
    var result: [String] = []
    var rest = lines
    while !rest.isEmpty {
      let plain = rest.prefix { !$0.hasPrefix("  ") }
      result += plain.map(\.roff)
      rest = rest.dropFirst(plain.count)
      let indented = rest.prefix { $0.hasPrefix("  ") }
      result += block(indented.map { String($0.dropFirst(2)) })
      rest = rest.dropFirst(indented.count)
    }
    return result
  }

  private static func block(_ lines: [String]) -> [String] {
    if lines.isEmpty { return [] }
    let entries = lines.map(entry)
    if entries.allSatisfy({ $0 != nil }) {
      let items = entries.compactMap { $0 }
        .flatMap { [".It \($0.term.roffArgument)", $0.text.roff] }
      return [".Bl -tag -width Ds"] + items + [".El"]
    }
    return [".Bd -literal -offset indent"] + lines.map(\.roff) + [".Ed"]
  }

  /// A line's first word, and the text two or more spaces after it.
  private static func entry(_ line: String) -> (term: String, text: String)? {
    guard let gap = line.firstRange(of: "  ") else { return nil }
    let term = line[..<gap.lowerBound]
    guard !term.isEmpty, !term.contains(" ") else { return nil }
    return (String(term), String(line[gap.upperBound...].drop { $0 == " " }))
  }
}

extension String {
  /// The text as a line of roff that is not a request.
  var roff: String {
    let escaped = replacing("\\", with: "\\e").replacing("-", with: "\\-")
      .replacing("'", with: "\\(aq").replacing("\n", with: " ")
    let plain = escaped.unicodeScalars.map {
      $0.isASCII ? String($0) : "\\[u\(String($0.value, radix: 16, uppercase: true))]"
    }.joined()
    return plain.hasPrefix(".") ? "\\&" + plain : plain
  }

  /// The text as one argument of a macro, none of whose words is a macro.
  var roffArgument: String {
    "\\&" + roff.replacing("\"", with: "\\(dq").replacing(" ", with: "\\ ")
  }

  var trimmingDot: String { hasSuffix(".") ? String(dropLast()) : self }
}
