import Documents
import Values

/// Lays values out for reading: a container on one line if it fits, else a line for each entry;
/// keys sorted; every character escaped that a terminal would act on.
struct PrettyWriter {
  private var bytes: [UInt8] = []
  private let width: Int
  private let hasColor: Bool

  static func text(_ value: Value, width: Int, hasColor: Bool) -> String {
    var writer = PrettyWriter(width: width, hasColor: hasColor)
    writer.write(value, indent: 0, column: 0)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private init(width: Int, hasColor: Bool) {
    self.width = width
    self.hasColor = hasColor
  }

  private mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func colored(_ text: String, _ color: String) {
    if !hasColor { return raw(text) }
    raw("\u{1b}[\(color)m")
    raw(text)
    raw("\u{1b}[0m")
  }

  // MARK: Values

  private mutating func write(_ value: Value, indent: Int, column: Int) {
    switch value {
    case .array(let elements) where !elements.isEmpty:
      let isInline = width == .max || Self.measure(value, limit: width - column - 1) != nil
      raw("[")
      var isFirst = true
      for element in elements {
        separate(isFirst, isInline, indent + 1)
        isFirst = false
        write(element, indent: indent + 1, column: isInline ? 0 : 2 * (indent + 1))
      }
      close("]", isInline, indent)
    case .object(let entries) where !entries.isEmpty:
      let isInline = width == .max || Self.measure(value, limit: width - column - 1) != nil
      raw("{")
      var isFirst = true
      for (key, value) in entries.sorted(by: { String.precedes($0.key, $1.key) }) {
        separate(isFirst, isInline, indent + 1)
        isFirst = false
        let name = Self.quoted(key)
        colored(name, "34;1")
        raw(": ")
        let column = 2 * (indent + 1) + name.unicodeScalars.count + 2
        write(value, indent: indent + 1, column: isInline ? 0 : column)
      }
      close("}", isInline, indent)
    default: write(scalar: value)
    }
  }

  private mutating func separate(_ isFirst: Bool, _ isInline: Bool, _ indent: Int) {
    if !isFirst { raw(isInline ? ", " : ",") }
    if !isInline { newLine(indent) }
  }

  private mutating func close(_ bracket: String, _ isInline: Bool, _ indent: Int) {
    if !isInline { newLine(indent) }
    raw(bracket)
  }

  private mutating func newLine(_ indent: Int) {
    raw("\n")
    for _ in 0..<indent { raw("  ") }
  }

  private mutating func write(scalar value: Value) {
    switch value {
    case .text(let text): colored(Self.quoted(text), "32")
    case .null: colored("null", "2")
    case .bool, .integer, .unsigned, .double: colored(JSON.text(value), "33")
    case .bytes, .array, .object: raw(JSON.text(value))
    }
  }

  /// The text as a JSON string.
  static func quoted(_ text: String) -> String { JSON.text(.text(text)).escapingControls }

  // MARK: Measuring

  /// The columns of a value on one line; nil when they are more than `limit`. Stops there.
  private static func measure(_ value: Value, limit: Int) -> Int? {
    var left = limit
    return subtract(value, &left) ? limit - left : nil
  }

  private static func subtract(_ value: Value, _ left: inout Int) -> Bool {
    guard left >= 0 else { return false }
    switch value {
    case .array(let elements):
      left -= 2 + 2 * Swift.max(0, elements.count - 1)
      guard left >= 0 else { return false }
      for element in elements where !subtract(element, &left) { return false }
    case .object(let entries):
      left -= 2 + 2 * Swift.max(0, entries.count - 1)
      guard left >= 0 else { return false }
      for (key, value) in entries {
        left -= quoted(key.shortenedForMeasure).unicodeScalars.count + 2
        guard subtract(value, &left) else { return false }
      }
    case .text(let text): left -= quoted(text.shortenedForMeasure).unicodeScalars.count
    case .bytes(let bytes): left -= 14 + (bytes.count + 2) / 3 * 4
    case .null, .bool, .integer, .unsigned, .double:
      left -= JSON.text(value).utf8.count
    }
    return left >= 0
  }
}

extension String {
  /// A long text cut to more than the length of any line, so that measuring stays cheap.
  fileprivate var shortenedForMeasure: String {
    utf8.count <= 4096 ? self : String(unicodeScalars.prefix(1024))
  }
}
