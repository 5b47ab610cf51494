/// The rows of a list under their headings, as lines of exactly a width.
struct TopTable {
  let list: TopList
  let sort: TopSort
  /// The columns that have room, with their widths.
  private let columns: [(column: TopColumn, width: Int)]
  private let width: Int

  /// The most columns that the first text needs, so that numbers are not far from it.
  private static let mostOfFirst = 36
  /// Those that it gets before others, where they are not scarce: `lockstep top (this)`.
  private static let usualOfFirst = 19

  init(_ list: TopList, sort: TopSort, width: Int) {
    self.list = list
    self.sort = sort
    self.width = width
    func least(_ column: TopColumn) -> Int {
      column == list.columns.first && width >= 70 ? Self.usualOfFirst : column.layout.width
    }
    func needed(_ columns: [TopColumn]) -> Int {
      columns.reduce(2 * (columns.count - 1)) { $0 + least($1) }
    }
    var chosen = list.columns
    while needed(chosen) > width, chosen.count > 1 {
      // The column by which the list is sorted stays, and so does the first.
      let last = chosen.dropFirst().filter { $0 != sort.column }
        .max { $0.layout.rank < $1.layout.rank }
      guard let last, let index = chosen.firstIndex(of: last) else {
        chosen.removeLast()
        continue
      }
      chosen.remove(at: index)
    }
    columns = Self.widened(chosen.map { ($0, least($0)) }, by: width - needed(chosen))
  }

  /// The columns with what is left of the width: the same for all texts, for the first up to a limit.
  private static func widened(
    _ columns: [(column: TopColumn, width: Int)], by rest: Int
  ) -> [(column: TopColumn, width: Int)] {
    // The only one has all, also if that is less than it needs.
    if columns.count == 1 { return [(columns[0].column, max(1, columns[0].width + rest))] }
    var rest = rest
    let texts = columns.indices.filter { columns[$0].column.isText }
    var widened = columns
    for (place, index) in texts.enumerated() {
      let share = rest / (texts.count - place)
      let isLast = index == columns.count - 1
      let more = isLast ? rest : min(share, max(0, mostOfFirst - columns[index].width))
      widened[index].width += more
      rest -= more
    }
    return widened
  }

  /// The headings; the first one names the list and says how many rows it has.
  func heading(shown: Int, of all: Int, isKnown: Bool) -> String {
    line { column in
      var text = column.heading
      if column == list.columns.first, isKnown {
        let counts = shown == all ? UInt64(all).grouped : "\(shown)/\(UInt64(all).grouped)"
        text = "\(list.rawValue.uppercased()) \(counts)"
      }
      let isUp = sort.isReversed != column.isText
      return column == sort.column ? text + (isUp ? "↑" : "↓") : text
    }
  }

  func line(_ row: TopModel.ClientRow) -> String {
    line { column in
      switch column {
      case .pid: "\(row.pid)"
      case .uid: "\(row.uid)"
      case .actions: TopText.rate(row.actionsPerSecond)
      case .bytes: TopText.bytes(perSecond: row.bytesPerSecond)
      case .lag: TopText.count(row.lagRevisions)
      case .unsent: TopText.bytes(row.lagBytes)
      case .stalled: row.lagMs == 0 ? "-" : TopText.age(milliseconds: row.lagMs)
      case .paths: row.scopes
      default: row.isOwn ? "\(row.label) (this)" : row.label
      }
    }
  }

  /// A line of an action; `all` is the rate of all whose names were seen.
  func line(_ row: TopModel.ActionRow, all: Double) -> String {
    line { column in
      switch column {
      case .rate: TopText.rate(row.perSecond)
      case .share: TopText.percent(row.perSecond.flatMap { all > 0 ? $0 / all : nil })
      case .count: TopText.count(row.count)
      case .rejected: TopText.count(row.rejected)
      default: row.name
      }
    }
  }

  func line(_ row: TopModel.EffectRow) -> String {
    line { column in
      switch column {
      case .key: row.key
      case .age: TopText.age(milliseconds: row.startedMs)
      case .sent: TopText.count(row.sent)
      case .by: row.action
      default: row.name
      }
    }
  }

  private func line(_ cell: (TopColumn) -> String) -> String {
    columns.map { column, width in
      cell(column).escapingControls.filling(width, isNumber: !column.isText)
    }.joined(separator: "  ").filling(width)
  }
}
