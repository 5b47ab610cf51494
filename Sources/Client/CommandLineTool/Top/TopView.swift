import Values

/// What a person has chosen to see: the list that has the room, orders, a filter. Keys change it.
struct TopView: Sendable {
  /// What follows from a key, apart from another picture.
  enum Effect: Equatable, Sendable {
    case none, quit
    /// Stop showing new looks, or go on.
    case freeze
  }

  var list = TopList.clients
  private var sorts: [TopList: TopSort] = [:]
  private var offsets: [TopList: Int] = [:]
  var filter = ""
  /// The filter while it is typed; nil when none is.
  private(set) var typed: String?
  private(set) var showsHelp = false
  var isFrozen = false

  private static let mostFilterCharacters = 100

  init(sort: TopColumn? = nil, list: TopList? = nil, filter: String = "") {
    if let sort {
      sorts[sort.list] = TopSort(column: sort)
      self.list = sort.list
    }
    if let list { self.list = list }
    self.filter = filter
  }

  func sort(of list: TopList) -> TopSort { sorts[list] ?? TopSort(column: list.firstSort) }

  /// The first row that is shown, of a list of which so many have room.
  func offset(of list: TopList, rows: Int, room: Int) -> Int {
    min(offsets[list] ?? 0, max(0, rows - room))
  }

  /// The filter that applies now: already while it is typed.
  var currentFilter: String { typed ?? filter }

  /// Take a key. `rows` is how many rows the list has, and `room` how many are shown.
  mutating func press(_ key: TopKey, rows: Int, room: Int) -> Effect {
    if typed != nil {
      type(key)
      return .none
    }
    if showsHelp {
      showsHelp = false
      return key == .character("q") ? .quit : .none
    }
    switch key {
    case .character("q"): return .quit
    case .character(" "):
      isFrozen.toggle()
      return .freeze
    case .character("?"), .character("h"): showsHelp = true
    case .character("/"): typed = filter
    case .character("s"), .character(">"): moveSort(by: 1)
    case .character("<"): moveSort(by: -1)
    case .character("r"): reverse()
    case .tab: moveList(by: 1)
    case .backTab: moveList(by: -1)
    case .character("1"): list = .clients
    case .character("2"): list = .actions
    case .character("3"): list = .effects
    case .escape: filter = ""
    case .up, .character("k"): scroll(by: -1, rows, room)
    case .down, .character("j"): scroll(by: 1, rows, room)
    case .pageUp: scroll(by: -max(1, room - 1), rows, room)
    case .pageDown: scroll(by: max(1, room - 1), rows, room)
    case .home: offsets[list] = 0
    case .end: scroll(by: rows, rows, room)
    case .enter, .backspace, .character: break
    }
    return .none
  }

  private mutating func type(_ key: TopKey) {
    switch key {
    case .character(let character):
      if let typed, typed.count < Self.mostFilterCharacters {
        self.typed = typed + String(character)
      }
    case .backspace: typed = typed.map { String($0.dropLast()) }
    case .enter:
      filter = typed ?? ""
      typed = nil
    case .escape:
      filter = ""
      typed = nil
    case .tab, .backTab, .up, .down, .pageUp, .pageDown, .home, .end: break
    }
    offsets = [:]
  }

  private mutating func moveSort(by step: Int) {
    let columns = list.columns
    let index = columns.firstIndex(of: sort(of: list).column) ?? 0
    let next = (index + step + columns.count) % columns.count
    sorts[list] = TopSort(column: columns[next])
    offsets[list] = 0
  }

  private mutating func reverse() {
    var sort = sort(of: list)
    sort.isReversed.toggle()
    sorts[list] = sort
    offsets[list] = 0
  }

  private mutating func moveList(by step: Int) {
    let all = TopList.allCases
    let index = all.firstIndex(of: list) ?? 0
    list = all[(index + step + all.count) % all.count]
  }

  private mutating func scroll(by step: Int, _ rows: Int, _ room: Int) {
    let offset = offset(of: list, rows: rows, room: room) + step
    offsets[list] = min(max(0, offset), max(0, rows - room))
  }
}

// MARK: Rows

extension TopView {
  /// The rows of a list that pass the filter, in their order.
  func clients(of model: TopModel) -> [TopModel.ClientRow] {
    let rows = model.clients.filter { passes([$0.label, "\($0.pid)"]) }
    let sort = sort(of: .clients)
    return sort.sorted(rows) { .init(sort.column, of: $0) }
  }

  func actions(of model: TopModel) -> [TopModel.ActionRow] {
    // By name where all else is equal, for a dictionary has no order.
    let rows = model.actions.filter { passes([$0.name]) }
      .sorted { String.precedes($0.name, $1.name) }
    let sort = sort(of: .actions)
    // Of equal rates, those of which there were more.
    let counted = TopSort(column: .count).sorted(rows) { .init(.count, of: $0) }
    return sort.sorted(sort.column.isText ? rows : counted) { .init(sort.column, of: $0) }
  }

  func effects(of model: TopModel) -> [TopModel.EffectRow] {
    let rows = model.effects.filter { passes([$0.name, $0.key, $0.action, $0.client]) }
    let sort = sort(of: .effects)
    return sort.sorted(rows) { .init(sort.column, of: $0) }
  }

  /// Whether one of the texts contains the filter, in large or small letters.
  private func passes(_ texts: [String]) -> Bool {
    let wanted = currentFilter.lowercased()
    return wanted.isEmpty || texts.contains { $0.lowercased().contains(wanted) }
  }
}
