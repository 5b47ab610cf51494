import Values

/// The picture of a model: lines of exactly the width of a terminal, never more than it has.
struct TopScreen {
  struct Size: Equatable, Sendable {
    var columns: Int
    var rows: Int
  }

  enum Style: Sendable {
    case plain, title, heading, chosenHeading, faint, warning
  }

  struct Line: Equatable, Sendable {
    var text: String
    var style = Style.plain
  }

  let model: TopModel
  let view: TopView
  let size: Size
  /// How long the daemon has not answered, if that is long.
  var silence: Duration?

  private var width: Int { max(1, size.columns) }
  private var height: Int { max(1, size.rows) }

  /// The rows of a list that pass the filter, in order; drawn only where they are seen.
  private struct Rows {
    let table: TopTable
    let count: Int
    let all: Int
    /// What is said instead of rows, or above them.
    var message: String?
    var isKnown = true
    let line: (Int) -> Line
  }

  // MARK: Layout

  /// How many rows each list has room for, without its heading; nil for a list that is not shown.
  private struct Layout {
    var summary: Int
    var gap: Int
    var rows: [TopList: Int] = [:]
  }

  private func layout(_ lists: [TopList: Rows]) -> Layout {
    func wanted(_ list: TopList) -> Int {
      guard let rows = lists[list] else { return 1 }
      return max(1, rows.count + (rows.message == nil ? 0 : 1))
    }
    // The title and the last line are there always, as far as there are so many.
    let summary = min(4, max(0, height - 2) / 3)
    let gap = height >= 20 ? 1 : 0
    var room = height - 2 - summary - gap
    var layout = Layout(summary: summary, gap: gap)
    guard room > 1 else { return layout }
    let others = TopList.allCases.filter { $0 != view.list }
    if room >= 8 {
      let most = room >= 14 ? 3 : 0
      for list in others {
        layout.rows[list] = min(most, wanted(list))
        room -= 1 + min(most, wanted(list))
      }
    }
    room -= 1
    let chosen = min(room, wanted(view.list))
    room -= chosen
    layout.rows[view.list] = chosen
    // What the chosen list leaves is for the others.
    for list in others where layout.rows[list] != nil {
      let more = min(room, wanted(list) - (layout.rows[list] ?? 0))
      layout.rows[list, default: 0] += more
      room -= more
    }
    layout.rows[view.list, default: 0] += room
    return layout
  }

  /// How many rows the chosen list has, and how many are shown: what scrolling needs.
  var extent: (rows: Int, room: Int) {
    let lists = lists
    return extent(lists, layout(lists))
  }

  private func extent(_ lists: [TopList: Rows], _ layout: Layout) -> (rows: Int, room: Int) {
    guard let chosen = lists[view.list] else { return (0, 0) }
    let room = layout.rows[view.list] ?? 0
    return (chosen.count, max(0, room - (chosen.message == nil ? 0 : 1)))
  }

  // MARK: Lines

  /// The whole picture.
  var lines: [Line] {
    let lists = lists
    let layout = layout(lists)
    let summary = TopSummary(model: model, width: width)
    var result = [Line(text: summary.title(remark), style: .title)]
    result += styled(summary.lines.prefix(layout.summary))
    result += Array(repeating: blank, count: layout.gap)
    if view.showsHelp {
      result += help.prefix(max(0, height - result.count - 1))
    } else {
      for list in TopList.allCases {
        guard let room = layout.rows[list], let rows = lists[list] else { continue }
        result += section(rows, room: room)
      }
    }
    result = Array(result.prefix(max(0, height - 1)))
    result += Array(repeating: blank, count: max(0, height - 1 - result.count))
    result.append(footer(lists, layout))
    return Array(result.prefix(height))
  }

  /// The picture without a terminal: everything, line by line.
  var wholeText: [String] {
    let lists = lists
    let summary = TopSummary(model: model, width: width)
    var result = [summary.title(remark)] + summary.lines.map(\.text)
    for list in TopList.allCases {
      guard let rows = lists[list] else { continue }
      let room = max(1, rows.count + (rows.message == nil ? 0 : 1))
      result += [""] + section(rows, room: room).map(\.text)
    }
    return result.map(\.withoutTrailingSpaces)
  }

  private var blank: Line { Line(text: String(repeating: " ", count: width)) }

  private func styled(_ lines: some Sequence<TopSummary.Line>) -> [Line] {
    lines.map { Line(text: $0.text, style: $0.isWarning ? .warning : .plain) }
  }

  private var remark: String {
    if let silence { return "no answer for \(silence.formatted)" }
    if let paused = model.look?.status.child("pausedMs")?.number {
      return "daemon paused \(TopText.time(milliseconds: paused))"
    }
    return view.isFrozen ? "frozen" : ""
  }

  private func section(_ rows: Rows, room: Int) -> [Line] {
    let isChosen = rows.table.list == view.list
    let heading = rows.table.heading(shown: rows.count, of: rows.all, isKnown: rows.isKnown)
    var lines = [Line(text: heading, style: isChosen ? .chosenHeading : .heading)]
    var room = room
    if room > 0, let message = rows.message {
      lines.append(Line(text: message.escapingControls.filling(width), style: .faint))
      room -= 1
    }
    let offset = view.offset(of: rows.table.list, rows: rows.count, room: room)
    lines += (offset..<min(rows.count, offset + room)).map(rows.line)
    // A list keeps its room, so that those below it do not move.
    return lines + Array(repeating: blank, count: max(0, room - rows.count))
  }

  private func footer(_ lists: [TopList: Rows], _ layout: Layout) -> Line {
    if let typed = view.typed {
      // The end of what is typed is what one looks at.
      let room = max(0, width - 2)
      var shown = typed.escapingControls[...]
      while String(shown).columns > room { shown = shown.dropFirst() }
      return Line(text: "/\(shown)_".filling(width))
    }
    var keys = "q quit  s sort  r reverse  / filter  tab list  space freeze  ? keys"
    if view.showsHelp { keys = "any key goes back" }
    if !view.filter.isEmpty { keys = "filter '\(view.filter)', esc drops it  " + keys }
    let (rows, room) = extent(lists, layout)
    let first = view.offset(of: view.list, rows: rows, room: room)
    let range = rows > room && room > 0 ? " \(first + 1)-\(first + room) of \(rows)" : ""
    let left = keys.escapingControls.filling(max(0, width - range.columns))
    return Line(text: (left + range).filling(width), style: .faint)
  }

  private var help: [Line] {
    let texts = [
      "KEYS",
      "q          quit                        Ctrl-C, Ctrl-Z  end, stop for a while",
      "s > <      sort by the next column, or the one before",
      "r          reverse the order",
      "/          filter by label, pid, action or effect: Enter keeps it, Esc drops it",
      "Tab 1 2 3  give the room to another list: clients, actions, effects",
      "arrows, PgUp, PgDn, Home, End          scroll",
      "space      freeze what is shown, and go on",
      "",
      "LAG     revisions that a client has not been sent yet",
      "UNSENT  bytes that wait in its socket, and STALL for how long",
      "'lockstep top --help' says more.",
    ]
    return texts.enumerated().map { index, text in
      Line(text: text.filling(width), style: index == 0 ? .chosenHeading : .plain)
    }
  }

  // MARK: Rows

  private var lists: [TopList: Rows] {
    [.clients: clients, .actions: actions, .effects: effects]
  }

  private func table(_ list: TopList) -> TopTable {
    TopTable(list, sort: view.sort(of: list), width: width)
  }

  private var clients: Rows {
    let (rows, table) = (view.clients(of: model), table(.clients))
    return Rows(
      table: table, count: rows.count, all: model.clients.count,
      message: message(model.look?.clients.reason, rows.isEmpty, "no client"),
      isKnown: model.look?.clients.contents != nil
    ) { index in
      let row = rows[index]
      return Line(text: table.line(row), style: row.lagMs >= 1000 ? .warning : .plain)
    }
  }

  private var actions: Rows {
    let (rows, table) = (view.actions(of: model), table(.actions))
    let all = model.actions.reduce(0) { $0 + ($1.perSecond ?? 0) }
    var message = message(model.look?.log.reason, rows.isEmpty, "no action yet")
    if message == nil, model.unseenActions > 0 {
      message =
        "a sample: of the last \(model.newActions.grouped) actions, "
        + "\(model.unseenActions.grouped) were not seen"
    }
    return Rows(
      table: table, count: rows.count, all: model.actions.count, message: message,
      isKnown: model.look?.log.contents != nil
    ) { Line(text: table.line(rows[$0], all: all)) }
  }

  private var effects: Rows {
    let (rows, table) = (view.effects(of: model), table(.effects))
    return Rows(
      table: table, count: rows.count, all: model.effects.count,
      message: message(model.look?.effects.reason, rows.isEmpty, "no effect is running"),
      isKnown: model.look?.effects.contents != nil
    ) { Line(text: table.line(rows[$0])) }
  }

  /// What is said where there are no rows.
  private func message(_ reason: String?, _ isEmpty: Bool, _ none: String) -> String? {
    if model.look == nil { return "waiting for the daemon" }
    if let reason { return reason }
    if !isEmpty { return nil }
    return view.currentFilter.isEmpty ? none : "none for '\(view.currentFilter)'"
  }
}

extension String {
  fileprivate var withoutTrailingSpaces: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
