import BoardFeature
import Lockstep

/// A board as text: its columns side by side, and the names of its viewers.
struct Picture: Equatable {
  private(set) var lines: [String]

  /// The picture of a state, with a mark at one of its cards.
  init(_ state: Board.State, mark: Card.ID? = nil) {
    let holders = Board.State.holders(state)
    let columns = state.columns.map { column in
      [column.id, String(repeating: "-", count: Self.width - 2)]
        + column.cards.map { card in
          let mark = card.id == mark ? ">" : " "
          let holder = holders[card.id].map { " (\($0))" } ?? ""
          return "\(mark)\(card.id) \(card.title)\(holder)"
        }
    }
    lines = (0..<(columns.map(\.count).max() ?? 0)).map { row in
      let cells = columns.map { Self.cell(row < $0.count ? $0[row] : "") }
      return String(cells.joined().reversed().drop { $0 == " " }.reversed())
    }
    let names = Set(state.hands.map(\.entry.name)).sorted()
    if !names.isEmpty { lines.append(Self.shown("here: " + names.joined(separator: ", "))) }
  }

  /// A text without what a terminal would obey: anybody may have written it.
  static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
  }

  func print() { for line in lines { Swift.print(line) } }

  private static let width = 26

  /// A text as wide as a column.
  private static func cell(_ text: String) -> String {
    let text = shown(text)
    let cut = text.count < width ? text : text.prefix(width - 2) + "…"
    return cut + String(repeating: " ", count: max(0, width - cut.count))
  }
}
