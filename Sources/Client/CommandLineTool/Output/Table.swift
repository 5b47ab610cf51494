/// Rows of cells under headings.
struct Table {
  struct Column {
    var heading: String
    var isNumber = false
    /// Whether a long cell may be cut: its text is then shorter, but not wrong.
    var mayBeCut = false
  }

  let columns: [Column]
  var rows: [[String]] = []

  init(_ columns: [Column]) { self.columns = columns }

  mutating func add(_ cells: [String]) { rows.append(cells.map(\.escapingControls)) }

  /// The table in lines that fit the width: in columns if the cells fit, after cutting those that
  /// may be cut, else each row as a block of its own.
  func text(width: Int, heading: (String) -> String = { $0 }) -> String {
    let widths = widths(within: width)
    guard widths.reduce(2 * (columns.count - 1), +) <= width else {
      return blocks(width: width, heading: heading)
    }
    func line(_ cells: [String]) -> String {
      let padded = cells.enumerated().map { index, cell in
        let cell = cell.cut(to: widths[index])
        if index == cells.count - 1 { return cell }
        let space = String(repeating: " ", count: widths[index] - cell.columns)
        return columns[index].isNumber ? space + cell : cell + space
      }
      return padded.joined(separator: "  ")
    }
    let head = heading(line(columns.map(\.heading)))
    return ([head] + rows.map(line)).joined(separator: "\n")
  }

  /// The columns' widths: the widths of their cells, less the excess, which is taken from the
  /// widest of those that may be cut.
  private func widths(within width: Int) -> [Int] {
    var widths = columns.indices.map { column in
      rows.reduce(columns[column].heading.columns) { max($0, $1[column].columns) }
    }
    let least = columns.map { max($0.heading.columns, $0.mayBeCut ? 8 : .max) }
    var excess = widths.reduce(2 * (columns.count - 1), +) - width
    while excess > 0 {
      let widest = widths.indices.filter { widths[$0] > least[$0] }.max { widths[$0] < widths[$1] }
      guard let widest else { break }
      widths[widest] -= 1
      excess -= 1
    }
    return widths
  }

  private func blocks(width: Int, heading: (String) -> String) -> String {
    let name = columns.map(\.heading.columns).max() ?? 0
    return rows.map { row in
      zip(columns, row).map { column, cell in
        let space = String(repeating: " ", count: name - column.heading.columns)
        return heading(column.heading) + space + "  " + cell.cut(to: max(8, width - name - 2))
      }.joined(separator: "\n")
    }.joined(separator: "\n\n")
  }
}
