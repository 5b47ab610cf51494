/// What a terminal shows, of the little that `lockstep` tells one: text, the place of the cursor,
/// clearing, and the second screen. What it does not know it keeps in `unknown`.
struct TerminalPicture: Sendable {
  private(set) var columns: Int
  private(set) var rows: Int
  /// Whether the second screen is shown.
  private(set) var isSecond = false
  private(set) var hasCursor = true
  private(set) var wraps = true
  private(set) var unknown: [String] = []
  private var screens: [[[Character]]]
  private var place = (row: 0, column: 0)
  private var firstPlace = (row: 0, column: 0)
  /// The beginning of what is not complete yet.
  private var rest: [UInt8] = []

  init(columns: Int, rows: Int) {
    (self.columns, self.rows) = (columns, rows)
    screens = Array(repeating: Self.blank(columns, rows), count: 2)
  }

  /// An empty picture of another size, in the same modes.
  init(columns: Int, rows: Int, like other: TerminalPicture) {
    self.init(columns: columns, rows: rows)
    (isSecond, hasCursor, wraps) = (other.isSecond, other.hasCursor, other.wraps)
    unknown = other.unknown
  }

  private static func blank(_ columns: Int, _ rows: Int) -> [[Character]] {
    Array(repeating: Array(repeating: " ", count: columns), count: rows)
  }

  /// The lines of the screen that is shown, of all columns.
  var lines: [String] { screens[isSecond ? 1 : 0].map { String($0) } }

  /// The first line that begins like this, and its index.
  func line(_ beginning: String) -> (index: Int, text: String)? {
    lines.enumerated().first { $0.element.hasPrefix(beginning) }.map { ($0.offset, $0.element) }
  }

  func contains(_ text: String) -> Bool { lines.contains { $0.contains(text) } }

  // MARK: Showing

  mutating func show(_ bytes: some Sequence<UInt8>) {
    rest += bytes
    // A character or a sequence may be split between two reads.
    guard let text = String(validating: rest, as: UTF8.self) else { return }
    var scalars = text.unicodeScalars[...]
    rest = []
    while let first = scalars.first {
      if first == "\u{1b}" {
        guard let sequence = Self.sequence(scalars) else {
          rest = Array(String(scalars).utf8)
          return
        }
        scalars = scalars.dropFirst(sequence.unicodeScalars.count)
        perform(sequence)
      } else {
        scalars = scalars.dropFirst()
        put(Character(first))
      }
    }
  }

  /// The sequence at the beginning; nil if it is not complete.
  private static func sequence(_ scalars: Substring.UnicodeScalarView) -> String? {
    guard let kind = scalars.dropFirst().first else { return nil }
    guard kind == "[" else { return String(String.UnicodeScalarView(scalars.prefix(2))) }
    let parameters = scalars.dropFirst(2).prefix { "\u{20}"..."\u{3f}" ~= $0 }
    guard scalars.count > 2 + parameters.count else { return nil }
    return String(String.UnicodeScalarView(scalars.prefix(3 + parameters.count)))
  }

  private mutating func perform(_ sequence: String) {
    let parameters = sequence.dropFirst(2).dropLast()
    switch (sequence.last, parameters) {
    case ("H", _):
      let numbers = parameters.split(separator: ";", omittingEmptySubsequences: false)
        .map { max(1, Int($0) ?? 1) }
      place = (
        min(rows, numbers.first ?? 1) - 1, min(columns, numbers.count > 1 ? numbers[1] : 1) - 1
      )
    case ("K", ""):
      for column in min(place.column, columns - 1)..<columns { set(" ", column) }
    case ("J", "2"): screens[isSecond ? 1 : 0] = Self.blank(columns, rows)
    case ("m", _): break
    case ("h", "?1049"):
      firstPlace = place
      isSecond = true
      screens[1] = Self.blank(columns, rows)
    case ("l", "?1049"):
      if isSecond { place = firstPlace }
      isSecond = false
    case ("h", "?25"): hasCursor = true
    case ("l", "?25"): hasCursor = false
    case ("h", "?7"): wraps = true
    case ("l", "?7"): wraps = false
    default: unknown.append(sequence)
    }
  }

  private mutating func put(_ character: Character) {
    switch character {
    case "\r": place.column = 0
    case "\n": newLine()
    default:
      if place.column >= columns, wraps {
        place.column = 0
        newLine()
      }
      place.column = min(place.column, columns - 1)
      set(character, place.column)
      place.column += 1
    }
  }

  private mutating func newLine() {
    if place.row < rows - 1 {
      place.row += 1
    } else {
      screens[isSecond ? 1 : 0].removeFirst()
      screens[isSecond ? 1 : 0].append(Array(repeating: " ", count: columns))
    }
  }

  private mutating func set(_ character: Character, _ column: Int) {
    screens[isSecond ? 1 : 0][place.row][column] = character
  }
}
