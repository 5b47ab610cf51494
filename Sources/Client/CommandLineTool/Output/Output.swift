import Documents
import Glibc
import Values

/// How results are shown: laid out for a person at a terminal, else one JSON value a line.
struct Output: Sendable {
  var isTerminal: Bool
  /// Whether values are laid out.
  var isPretty: Bool
  var hasColor: Bool

  init(isTerminal: Bool, isPretty: Bool, hasColor: Bool) {
    self.isTerminal = isTerminal
    self.isPretty = isPretty
    self.hasColor = hasColor
  }

  init(_ options: GlobalOptions) {
    isTerminal = Terminal.isTerminal(STDOUT_FILENO)
    isPretty = isTerminal && !options.json
    hasColor = isPretty && !options.noColor && Terminal.wantsColor(STDOUT_FILENO)
  }

  var width: Int { Terminal.width(STDOUT_FILENO) }

  /// Show a value.
  func show(_ value: Value) throws(Failure) {
    if isPretty { try lines(pretty(value)) } else { try line(value) }
  }

  /// Write a value as one line of JSON, its keys sorted.
  func line(_ value: Value) throws(Failure) {
    var bytes: [UInt8] = []
    if isTerminal {
      bytes = Array(JSON.text(value, sortedKeys: true).escapingControls.utf8)
    } else {
      JSON.write(value, into: &bytes, sortedKeys: true)
    }
    bytes.append(0x0a)
    try StandardOutput.write(bytes)
  }

  /// Write text that is escaped already, and end the line.
  func lines(_ text: String) throws(Failure) {
    try StandardOutput.write(Array((text + "\n").utf8))
  }

  func pretty(_ value: Value) -> String {
    PrettyWriter.text(value, width: width, hasColor: hasColor)
  }

  /// The text as a remark beside the values.
  func faint(_ text: String) -> String { colored(text, "2") }

  /// The text in a colour, given as the parameter of the terminal's sequence.
  func colored(_ text: String, _ color: String) -> String {
    hasColor ? "\u{1b}[\(color)m\(text)\u{1b}[0m" : text
  }
}
