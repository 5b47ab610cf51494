import Lockstep
import Testing
import Values

@testable import CommandLineTool

/// Looks and pictures of `lockstep top`, made of invented reports.
enum InventedTop {
  static let start = ContinuousClock.now

  static func status(run: Int64 = 1, uptime: Int64 = 5000, _ counters: [String: Int64]) -> Value {
    var members: TrieMap<String, Value> = [
      "epoch": "e", "run": .integer(run), "pid": 7, "uptimeMs": .integer(uptime),
      "version": "0.1.0",
      "socket": "/s", "durability": "sync", "journal": "healthy", "pausedMs": nil,
    ]
    for (name, number) in counters { members.updateValue(.integer(number), forKey: name) }
    return .object(members)
  }

  static func client(
    _ number: Int64, pid: Int64 = 10, label: String = "one", actions: Int64 = 0, bytes: Int64 = 0,
    lag: Int64 = 0
  ) -> Value {
    [
      "connection": .integer(number), "pid": .integer(pid), "uid": 0, "label": .text(label),
      "actions": .integer(actions), "bytesSent": .integer(bytes), "lagRevisions": .integer(lag),
      "lagBytes": .integer(lag * 10), "lagMs": 0, "scopes": [""], "subscriptions": 1,
    ]
  }

  static func record(_ sequence: Int64, _ action: String, _ outcome: String = "changed")
    -> LogRecord?
  {
    LogRecord([
      "sequence": .integer(sequence), "action": .text(action), "outcome": .text(outcome),
    ])
  }

  /// A look so many seconds after the first one.
  static func look(
    at seconds: Double, _ status: Value, clients: [Value] = [], effects: [Value] = [],
    log: [LogRecord?] = [], newest: UInt64? = nil
  ) -> TopLook {
    let records = log.compactMap { $0 }
    return TopLook(
      time: start + .seconds(seconds), status: status, clients: .contents(clients),
      effects: .contents(effects),
      log: .contents(.init(records: records, newest: newest ?? records.last?.sequence ?? 0)),
      metrics: .contents(["lockstep_state_memory_bytes": 2_000_000]), process: nil)
  }

  static func model(_ looks: TopLook...) -> TopModel {
    var model = TopModel(label: "lockstep top", pid: 99)
    for look in looks { model.add(look) }
    return model
  }
}

struct TopModelTests {
  private typealias Top = InventedTop

  @Test func `a rate is the difference of a counter by the time between two looks`() {
    let model = Top.model(
      Top.look(
        at: 0, Top.status(["actions": 100, "rejected": 1, "revision": 50]),
        clients: [Top.client(1, actions: 10, bytes: 1000)]),
      Top.look(
        at: 2, Top.status(["actions": 300, "rejected": 1, "revision": 60]),
        clients: [Top.client(1, actions: 40, bytes: 5000)]))
    #expect(model.rates.actions == 100 && model.rates.rejected == 0 && model.rates.revisions == 5)
    #expect(model.clients.map(\.actionsPerSecond) == [15])
    #expect(model.clients.map(\.bytesPerSecond) == [2000])
    #expect(model.seconds == 2)
  }

  @Test func `the first look has no rates, nor has a client that is new`() {
    let first = Top.look(
      at: 0, Top.status(["actions": 100]), clients: [Top.client(1, actions: 10)],
      log: [Top.record(1, "set")])
    #expect(Top.model(first).rates == TopModel.Rates())
    #expect(Top.model(first).clients.map(\.actionsPerSecond) == [nil])
    #expect(Top.model(first).actions.map(\.perSecond) == [nil])
    let second = Top.look(
      at: 1, Top.status(["actions": 600]),
      clients: [Top.client(1, actions: 12), Top.client(2, actions: 500)])
    #expect(Top.model(first, second).clients.map(\.actionsPerSecond) == [2, nil])
  }

  @Test(arguments: [
    Top.status(run: 2, ["actions": 900]), Top.status(uptime: 10, ["actions": 900]),
  ])
  func `behind a restart there are no rates, and names are counted anew`(later: Value) {
    let clients = [Top.client(1, actions: 10)]
    let model = Top.model(
      Top.look(at: 0, Top.status(["actions": 100]), clients: clients, log: [Top.record(9, "a")]),
      Top.look(
        at: 1, later, clients: [Top.client(1, actions: 999)],
        log: [Top.record(1, "b"), Top.record(2, "b")]))
    #expect(model.rates == TopModel.Rates() && model.seconds == nil)
    #expect(model.clients.map(\.actionsPerSecond) == [nil])
    #expect(model.actions.map(\.name) == ["b"] && model.actions.map(\.count) == [2])
    #expect(model.unseenActions == 0)
  }

  @Test func `a counter that gets smaller has no rate, and those beside it have`() {
    let model = Top.model(
      Top.look(
        at: 0, Top.status(["actions": 100, "revision": 5]),
        clients: [Top.client(1, actions: 10, bytes: 500), Top.client(2, pid: 5, actions: 1)]),
      Top.look(
        at: 1, Top.status(["actions": 99, "revision": 6]),
        clients: [Top.client(1, actions: 3, bytes: 600), Top.client(2, pid: 6, actions: 9)]))
    #expect(model.rates.actions == nil && model.rates.revisions == 1)
    #expect(model.clients.map(\.actionsPerSecond) == [nil, nil])
    #expect(model.clients.map(\.bytesPerSecond) == [100, nil], "another process has that number")
  }

  @Test func `two looks at one moment give no rate`() {
    let model = Top.model(
      Top.look(at: 0, Top.status(["actions": 1])), Top.look(at: 0, Top.status(["actions": 9])))
    #expect(model.rates.actions == nil)
  }

  @Test func `actions are counted by name once, and those that were not seen are said`() {
    let first = Top.look(at: 0, Top.status([:]), log: [Top.record(1, "set"), Top.record(2, "set")])
    let second = Top.look(
      at: 2, Top.status([:]),
      log: [
        Top.record(2, "set"), Top.record(9, "set"), Top.record(10, "merge", "rejected: limit: no"),
      ])
    let model = Top.model(first, second)
    let rows = model.actions.sorted { $0.name < $1.name }
    #expect(rows.map(\.name) == ["merge", "set"])
    #expect(rows.map(\.count) == [1, 3] && rows.map(\.rejected) == [1, 0])
    #expect(rows.map(\.perSecond) == [0.5, 0.5])
    #expect(model.newActions == 8 && model.unseenActions == 6)
    let idle = Top.model(first, second, Top.look(at: 3, Top.status([:]), newest: 10))
    #expect(idle.newActions == 0 && idle.unseenActions == 0)
    #expect(idle.actions.map(\.perSecond) == [0, 0])
  }

  @Test func `the connection of the command itself is marked, and its bytes are not in the sum`() {
    func clients(_ bytes: Int64) -> [Value] {
      [
        Top.client(1, label: "lockstep top", bytes: bytes),
        Top.client(2, pid: 99, label: "lockstep top", bytes: 10 * bytes),
      ]
    }
    let model = Top.model(
      Top.look(at: 0, Top.status([:]), clients: clients(10)),
      Top.look(at: 1, Top.status([:]), clients: clients(30)))
    #expect(model.clients.map(\.isOwn) == [false, true])
    #expect(model.rates.bytes == 20)
  }

  @Test func `a process is read from its line, whatever its name`() {
    let behind = "S 1 1 1 0 -1 0 1 2 3 4 150 50 0 0 20 0 4 0 900 1000 25 0"
    let usage = ProcessUsage(stat: "7 (a) b) \(behind)\n", ticks: 100, page: 4096)
    #expect(usage == ProcessUsage(name: "a) b", residentBytes: 25 * 4096, seconds: 2))
    #expect(ProcessUsage(stat: "7 (a) S 1", ticks: 100, page: 4096) == nil)
  }
}

struct TopScreenTests {
  private typealias Top = InventedTop

  private static let sizes = [(80, 24), (40, 10), (200, 60), (20, 5), (1, 1), (3, 2), (79, 13)]

  private func lines(_ model: TopModel, _ view: TopView, _ columns: Int, _ rows: Int) -> [String] {
    TopScreen(model: model, view: view, size: .init(columns: columns, rows: rows)).lines.map(\.text)
  }

  private func busy(labels: [String]) -> TopModel {
    let clients = labels.enumerated().map { index, label in
      Top.client(
        Int64(index), pid: Int64(4_000_000 + index), label: label, actions: Int64(index),
        bytes: Int64(index) * 1_000_000_000, lag: Int64(index) * 1_000_000)
    }
    let effects: [Value] = labels.prefix(20).map {
      ["id": "1", "name": .text($0), "key": .text($0), "startedMs": 90_000_000, "sent": 3]
    }
    let log = labels.prefix(50).enumerated().map { Top.record(Int64($0.offset + 1), $0.element) }
    return Top.model(
      Top.look(at: 0, Top.status(["actions": 1, "revision": 1]), clients: clients, log: log),
      Top.look(
        at: 1, Top.status(["actions": 9_999_999_999, "revision": 7_777_777]), clients: clients,
        effects: effects, log: log, newest: 900))
  }

  private static let hostile = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}", "a\nb\r\u{9b}31m\u{202e}", "日本語のラベルは二桁を使います",
    "e\u{301}\u{302}\u{303}" + "x",
    "👩‍👩‍👧‍👦🇩🇪👍🏽", "\u{301}\u{200d}", "क्षत्रिय", "ｆｕｌｌ", "", String(repeating: "w", count: 3000),
    String(repeating: "語", count: 500),
  ]

  @Test(arguments: sizes)
  func `every picture has exactly the columns and rows of the terminal`(columns: Int, rows: Int) {
    let models = [
      Top.model(), busy(labels: []), busy(labels: Self.hostile),
      busy(labels: (0..<1000).map { "client \($0)" }),
    ]
    for model in models {
      for list in TopList.allCases {
        for key in [TopKey.tab, .character("?"), .character("/"), .end] {
          var view = TopView(list: list)
          for filter in ["", "a"] {
            view.filter = filter
            _ = view.press(key, rows: 1000, room: 3)
            let lines = lines(model, view, columns, rows)
            #expect(lines.count == rows)
            for line in lines { #expect(line.columns == columns, "\(line.debugDescription)") }
            #expect(!lines.joined().unicodeScalars.contains { $0.isUnsafe })
          }
        }
      }
    }
  }

  @Test func `with 1,000 clients the busiest are seen, and one scrolls to the last`() {
    let before = (0..<1000).map { Top.client(Int64($0), label: "c\($0)", actions: 0) }
    let after = (0..<1000).map { Top.client(Int64($0), label: "c\($0)", actions: Int64($0 * $0)) }
    let model = Top.model(
      Top.look(at: 0, Top.status([:]), clients: before),
      Top.look(at: 1, Top.status([:]), clients: after))
    var view = TopView()
    var lines = lines(model, view, 80, 24)
    let heading = lines.firstIndex { $0.hasPrefix("CLIENTS 1,000") } ?? 0
    #expect(lines[heading + 1].hasPrefix("c999 ") && lines[heading + 2].hasPrefix("c998 "))
    #expect(lines[23].contains(" of 1000"))
    let extent = TopScreen(model: model, view: view, size: .init(columns: 80, rows: 24)).extent
    #expect(extent.rows == 1000 && extent.room > 5)
    _ = view.press(.end, rows: extent.rows, room: extent.room)
    lines = self.lines(model, view, 80, 24)
    #expect(lines[heading + extent.room].hasPrefix("c0 "))
    _ = view.press(.pageUp, rows: extent.rows, room: extent.room)
    _ = view.press(.up, rows: extent.rows, room: extent.room)
    #expect(self.lines(model, view, 80, 24)[heading + extent.room].hasPrefix("c\(extent.room) "))
  }

  @Test func `at 80 columns no number of a client is cut, however large`() {
    let model = busy(labels: (0..<12).map { "client \($0)" })
    for column in TopList.clients.columns {
      let lines = lines(model, TopView(sort: column), 80, 24)
      let rows = lines.filter { $0.hasPrefix("client ") }
      #expect(rows.count > 3)
      for row in rows { #expect(!row.contains("…"), "\(row)") }
      let heading = lines.first { $0.hasPrefix("CLIENTS") } ?? ""
      for name in ["PID", "ACT/S", "SENT/S", "LAG", "UNSENT", "STALL"] {
        #expect(heading.contains(name) || column == .uid)
      }
      #expect(heading.contains("↓") || heading.contains("↑"))
    }
  }

  @Test func `the lines above the lists say what the daemon does, the most important first`() {
    let model = Top.model(
      Top.look(at: 0, Top.status(["actions": 5, "revision": 1, "rejected": 0])),
      Top.look(
        at: 1, Top.status(["actions": 15, "revision": 4, "rejected": 1, "durableRevision": 2]),
        clients: [Top.client(1, lag: 3), Top.client(2)]))
    let wide = lines(model, TopView(), 80, 24)
    #expect(wide[0].hasPrefix(" daemon 0.1.0  pid 7  up 5.0 s  /s"))
    #expect(wide[1].hasPrefix("Actions  10/s   rejected 1.0/s   revisions 3.0/s   now 4"))
    #expect(wide[2].hasPrefix("Clients  2 connected   1 behind by up to 3 revisions   30 B unsent"))
    #expect(wide[3].hasPrefix("Durable  sync   healthy   2 revisions not on disk"))
    #expect(wide[4].hasPrefix("Memory   state 2000 kB"))
    #expect(lines(model, TopView(), 40, 10)[1].hasPrefix("Actions  10/s   rejected 1.0/s  "))
  }

  @Test func `a report that is denied is said where it would be, and the others are shown`() {
    var look = Top.look(at: 0, Top.status(["revision": 4]), clients: [Top.client(1)])
    look.effects = .none("the daemon's policy does not let you see this")
    look.clients = look.effects.reason.map { .none($0) } ?? look.clients
    look.log = .contents(.init(records: [Top.record(1, "set")].compactMap { $0 }, newest: 1))
    let lines = lines(Top.model(look), TopView(), 80, 24)
    #expect(lines.count { $0.hasPrefix("the daemon's policy does not let you see this ") } == 2)
    #expect(lines.contains { $0.hasPrefix("set ") })
    #expect(lines[1].hasPrefix("Actions  not shown to you by the daemon's policy   revision 4"))
  }

  @Test func `a sample of names is called one`() {
    let model = Top.model(
      Top.look(at: 0, Top.status([:]), log: [Top.record(1, "set")]),
      Top.look(at: 1, Top.status([:]), log: [Top.record(5001, "set")]))
    let lines = lines(model, TopView(list: .actions), 80, 24)
    #expect(
      lines.contains { $0.hasPrefix("a sample: of the last 5,000 actions, 4,999 were not seen") })
  }

  @Test func `without a terminal all rows are there, and no line ends with a space`() {
    let model = busy(labels: (0..<300).map { "client \($0)" })
    let text = TopScreen(
      model: model, view: TopView(), size: .init(columns: 80, rows: .max)
    ).wholeText
    #expect(text.count { $0.hasPrefix("client ") && $0.contains("  ''") } == 300)
    #expect(!text.contains { $0.hasSuffix(" ") })
    #expect(text.allSatisfy { $0.columns <= 80 })
  }

  @Test func `JSON has null for what is not known, and the rows in the view's order`() {
    var look = Top.look(
      at: 0, Top.status(["actions": 4]),
      clients: [Top.client(1, label: "a", lag: 1), Top.client(2, label: "b", lag: 2)])
    look.effects = .none("no")
    let value = Top.model(look).value(TopView(sort: .lag))
    #expect(value.child("effects") == .null && value.child("actions") == [])
    #expect(value.child("perSecond")?.child("actions") == .null)
    #expect(value.child("memory")?.child("stateMemoryBytes") == 2_000_000)
    guard case .array(let clients)? = value.child("clients") else {
      Issue.record("no clients")
      return
    }
    #expect(clients.map { $0.cell("label") } == ["b", "a"])
    #expect(clients.map { $0.cell("own") } == ["false", "false"])
  }
}

struct TopViewTests {
  private typealias Top = InventedTop

  private func press(_ view: inout TopView, _ keys: TopKey...) {
    for key in keys { #expect(view.press(key, rows: 10, room: 4) != .quit) }
  }

  @Test func `a list is sorted by the column that is chosen, in both directions`() {
    let model = Top.model(
      Top.look(
        at: 0, Top.status([:]),
        clients: [
          Top.client(1, pid: 30, label: "b", lag: 2), Top.client(2, pid: 10, label: "c", lag: 9),
          Top.client(3, pid: 20, label: "a", lag: 2),
        ]))
    func labels(_ view: TopView) -> String { view.clients(of: model).map(\.label).joined() }
    #expect(labels(TopView(sort: .lag)) == "cba", "equal rows stay in the daemon's order")
    #expect(labels(TopView(sort: .label)) == "abc")
    var view = TopView(sort: .pid)
    #expect(labels(view) == "bac")
    press(&view, .character("r"))
    #expect(labels(view) == "cab")
    press(&view, .character("<"))
    #expect(view.sort(of: .clients) == TopSort(column: .label) && labels(view) == "abc")
    press(&view, .character("s"), .character(">"))
    #expect(view.sort(of: .clients).column == .uid)
    press(&view, .tab, .character(">"))
    #expect(view.sort(of: .actions).column == .share)
    #expect(view.sort(of: .clients).column == .uid, "each list has its own order")
  }

  @Test func `what is not known comes last among numbers`() {
    let model = Top.model(
      Top.look(at: 0, Top.status([:]), clients: [Top.client(1, label: "old", actions: 5)]),
      Top.look(
        at: 1, Top.status([:]),
        clients: [Top.client(2, label: "new", actions: 9), Top.client(1, label: "old", actions: 5)])
    )
    #expect(TopView(sort: .actions).clients(of: model).map(\.label) == ["old", "new"])
  }

  @Test
  func `a filter applies to labels, processes and names while it is typed, until it is dropped`() {
    let model = Top.model(
      Top.look(
        at: 0, Top.status([:]),
        clients: [Top.client(1, pid: 4711, label: "Hall"), Top.client(2, pid: 5, label: "attic")],
        effects: [["id": "1", "name": "hallway"], ["id": "2", "name": "fetch"]],
        log: [Top.record(1, "shall"), Top.record(2, "set")]))
    var view = TopView()
    press(&view, .character("/"), .character("h"), .character("A"), .character("l"))
    #expect(view.clients(of: model).map(\.label) == ["Hall"])
    #expect(view.actions(of: model).map(\.name) == ["shall"])
    #expect(view.effects(of: model).map(\.name) == ["hallway"])
    #expect(view.press(.character("q"), rows: 1, room: 1) == .none, "it is typed")
    press(&view, .backspace, .enter)
    #expect(view.filter == "hAl" && view.typed == nil)
    press(&view, .character("/"), .escape)
    #expect(view.filter == "" && view.clients(of: model).count == 2)
    #expect(TopView(filter: "471").clients(of: model).map(\.label) == ["Hall"])
  }

  @Test func `keys choose the list, freeze, show the keys, and quit`() {
    var view = TopView()
    press(&view, .tab)
    #expect(view.list == .actions)
    press(&view, .backTab, .backTab)
    #expect(view.list == .effects)
    press(&view, .character("1"))
    #expect(view.list == .clients)
    #expect(view.press(.character(" "), rows: 1, room: 1) == .freeze && view.isFrozen)
    #expect(view.press(.character(" "), rows: 1, room: 1) == .freeze && !view.isFrozen)
    press(&view, .character("?"))
    #expect(view.showsHelp)
    press(&view, .character("x"))
    #expect(!view.showsHelp)
    #expect(view.press(.character("q"), rows: 1, room: 1) == .quit)
  }

  @Test func `scrolling stays within the rows, also when they get fewer`() {
    var view = TopView()
    press(&view, .pageDown, .down)
    #expect(view.offset(of: .clients, rows: 10, room: 4) == 4)
    press(&view, .end, .down, .down)
    #expect(view.offset(of: .clients, rows: 10, room: 4) == 6)
    #expect(view.offset(of: .clients, rows: 2, room: 4) == 0)
    press(&view, .up)
    #expect(view.offset(of: .clients, rows: 10, room: 4) == 5)
    press(&view, .home, .up)
    #expect(view.offset(of: .clients, rows: 10, room: 4) == 0)
  }
}

struct TopKeysTests {
  @Test(
    arguments: [
      ("q", [.character("q")]), ("\u{1b}[A\u{1b}OB", [.up, .down]),
      ("\u{1b}[5~\u{1b}[6~x", [.pageUp, .pageDown, .character("x")]),
      ("\u{1b}[H\u{1b}[4~\u{1b}[1~\u{1b}[Z\t", [.home, .end, .home, .backTab, .tab]),
      ("\r\n\u{7f}\u{8}", [.enter, .enter, .backspace, .backspace]),
      ("é語👍", [.character("é"), .character("語"), .character("👍")]),
      ("\u{1b}[1;5A\u{1b}[15~\u{1b}[200~z", [.up, .character("z")]),
      ("\u{1b}q", [.escape, .character("q")]), ("\u{1}\u{9b}\u{202e}a", [.character("a")]),
    ] as [(String, [TopKey])])
  func `keys are the same however their bytes are split`(text: String, expected: [TopKey]) {
    let bytes = Array(text.utf8)
    var whole = TopKeys()
    #expect(whole.take(bytes) == expected)
    #expect(!whole.isPending)
    var single = TopKeys()
    #expect(bytes.flatMap { single.take([$0]) } == expected)
    for split in 0..<bytes.count {
      var keys = TopKeys()
      #expect(keys.take(bytes[..<split]) + keys.take(bytes[split...]) == expected)
    }
  }

  @Test func `escape alone is a key once nothing follows`() {
    var keys = TopKeys()
    #expect(keys.take([0x1b]) == [] && keys.isPending)
    #expect(keys.flush() == [.escape] && !keys.isPending)
    #expect(keys.take([0x1b, 0x5b]) == [])
    #expect(keys.take([0x41]) == [.up])
    #expect(keys.flush() == [])
  }

  @Test func `bytes that are no text are left out, and what follows them is not`() {
    var keys = TopKeys()
    #expect(keys.take([0xff, 0xe3, 0x41, 0xc3, 0x28, 0x62]).suffix(1) == [.character("b")])
    #expect(!keys.isPending)
    #expect(keys.take([0x1b, 0x5b] + [UInt8](repeating: 0x31, count: 500) + [0x7a]).count <= 500)
  }
}

struct TopTextTests {
  @Test func `numbers take few columns, and say their units`() {
    #expect(
      [0, 99_999, 123_456, 9_999_999, 12_345_678].map(TopText.count) == [
        "0", "99,999", "123k", "9,999k", "12.3M",
      ])
    #expect(
      [nil, 0, 0.26, 9.96, 1234.4, .nan].map(TopText.rate) == ["-", "0", "0.3", "10", "1,234", "-"])
    let sizes: [UInt64?] = [nil, 0, 9_999, 10_000, 12_345_678, 9_876_543_210, 12_345_678_901]
    #expect(
      sizes.map { TopText.bytes($0) } == [
        "-", "0", "9999 B", "10 kB", "12.3 MB", "9877 MB", "12.3 GB",
      ])
    for shift in 0..<43 { #expect(TopText.bytes((1 << shift) - 1).count <= 7) }
    #expect(
      [250, 3400, 61_000, 90_000_000].map { TopText.time(milliseconds: $0) } == [
        "250 ms", "3.4 s", "1 m 1 s", "1 d 1 h",
      ])
    #expect([nil, 0, 0.004, 0.5].map { TopText.percent($0) } == ["-", "0 %", "0.4 %", "50 %"])
  }
}
