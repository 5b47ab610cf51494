import ArgumentParser
import Values

/// The lists of the screen.
enum TopList: String, CaseIterable, ExpressibleByArgument, Sendable {
  case clients, actions, effects

  var columns: [TopColumn] { TopColumn.allCases.filter { $0.list == self } }

  /// The column by which the list is sorted at first.
  var firstSort: TopColumn {
    switch self {
    case .clients: .actions
    case .actions: .rate
    case .effects: .age
    }
  }
}

/// The columns of all lists, in their order on the screen. Each name is one for `--sort`.
enum TopColumn: String, CaseIterable, ExpressibleByArgument, Sendable {
  case label, pid, uid, actions, bytes, lag, unsent, stalled, paths
  case name, rate, share, count, rejected
  case effect, key, age, sent, by

  var list: TopList {
    switch self {
    case .label, .pid, .uid, .actions, .bytes, .lag, .unsent, .stalled, .paths: .clients
    case .name, .rate, .share, .count, .rejected: .actions
    case .effect, .key, .age, .sent, .by: .effects
    }
  }

  var heading: String {
    switch self {
    case .label: "CLIENT"
    case .pid: "PID"
    case .uid: "UID"
    case .actions: "ACT/S"
    case .bytes: "SENT/S"
    case .lag: "LAG"
    case .unsent: "UNSENT"
    case .stalled: "STALL"
    case .paths: "PATHS"
    case .name: "ACTION"
    case .rate: "RATE/S"
    case .share: "SHARE"
    case .count: "COUNT"
    case .rejected: "REJECTED"
    case .effect: "EFFECT"
    case .key: "KEY"
    case .age: "AGE"
    case .sent: "SENT"
    case .by: "BEGUN BY"
    }
  }

  var isText: Bool {
    switch self {
    case .label, .paths, .name, .effect, .key, .by: true
    case .pid, .uid, .actions, .bytes, .lag, .unsent, .stalled, .rate, .share, .count, .rejected,
      .age, .sent:
      false
    }
  }

  /// The least width, of texts; of numbers the usual one, so that columns do not move. What does not
  /// fit is left out, from the highest rank down.
  var layout: (width: Int, rank: Int) {
    switch self {
    case .label: (12, 0)
    case .actions: (7, 1)
    case .lag: (6, 2)
    case .unsent: (7, 3)
    case .bytes: (7, 4)
    case .stalled: (7, 5)
    case .pid: (7, 6)
    case .paths: (6, 7)
    case .uid: (5, 8)
    case .name: (12, 0)
    case .rate: (7, 1)
    case .count: (9, 2)
    case .share: (6, 3)
    case .rejected: (9, 4)
    case .effect: (12, 0)
    case .age: (6, 1)
    case .sent: (7, 2)
    case .key: (8, 3)
    case .by: (12, 4)
    }
  }

  /// What a row is sorted by.
  enum SortKey {
    /// Nothing known is less than everything.
    case number(Double?)
    case text(String)
  }
}

extension TopColumn.SortKey {
  private static func integer(_ number: UInt64?) -> Self { .number(number.map { Double($0) }) }

  init(_ column: TopColumn, of row: TopModel.ClientRow) {
    switch column {
    case .pid: self = Self.integer(row.pid)
    case .uid: self = Self.integer(row.uid)
    case .actions: self = .number(row.actionsPerSecond)
    case .bytes: self = .number(row.bytesPerSecond)
    case .lag: self = Self.integer(row.lagRevisions)
    case .unsent: self = Self.integer(row.lagBytes)
    case .stalled: self = Self.integer(row.lagMs)
    case .paths: self = .text(row.scopes)
    default: self = .text(row.label)
    }
  }

  init(_ column: TopColumn, of row: TopModel.ActionRow) {
    switch column {
    case .rate, .share: self = .number(row.perSecond)
    case .count: self = Self.integer(row.count)
    case .rejected: self = Self.integer(row.rejected)
    default: self = .text(row.name)
    }
  }

  init(_ column: TopColumn, of row: TopModel.EffectRow) {
    switch column {
    case .age: self = Self.integer(row.startedMs)
    case .sent: self = Self.integer(row.sent)
    case .key: self = .text(row.key)
    case .by: self = .text(row.action)
    default: self = .text(row.name)
    }
  }

  /// Whether this comes first; nil if neither does.
  func isBefore(_ other: Self) -> Bool? {
    switch (self, other) {
    case (.number(let mine), .number(let theirs)):
      let (mine, theirs) = (mine ?? -1, theirs ?? -1)
      // The largest first: that is what people look for.
      return mine == theirs ? nil : mine > theirs
    case (.text(let mine), .text(let theirs)):
      return String.isSame(mine, theirs) ? nil : String.precedes(mine, theirs)
    case (.number, .text), (.text, .number): return nil
    }
  }
}

/// How a list is sorted.
struct TopSort: Equatable, Sendable {
  var column: TopColumn
  /// Otherwise numbers begin with the largest, and texts with the first.
  var isReversed = false

  /// The rows in their order; those that are equal in it as they were.
  func sorted<Row>(_ rows: [Row], by key: (Row) -> TopColumn.SortKey) -> [Row] {
    let keyed = rows.enumerated().map { (index: $0.offset, key: key($0.element), row: $0.element) }
    return keyed.sorted { first, second in
      guard let isBefore = first.key.isBefore(second.key) else { return first.index < second.index }
      return isBefore != isReversed
    }.map(\.row)
  }
}
