import CBOR
import Lockstep
import Values

/// A part of a board.
struct Panel: HandWritten, Equatable {
  var value = 0
  var note: String?

  static var parts: [any FieldCoding<Panel>] {
    [Coded(0, "value", \Panel.value), Coded(1, "note", \Panel.note)]
  }
}

/// A state with a part of every kind.
struct BoardState: HandWritten {
  var count = 0
  var isLoading = false
  var fact: String?
  var alerts = Pulse<String?>(wrappedValue: nil)
  var panel = Panel()
  var login: Panel?
  var rows: SyncMap<Int, Panel> = [:]
  var log: [Int] = []

  static var parts: [any FieldCoding<BoardState>] {
    [
      Coded(0, "count", \BoardState.count), Coded(1, "isLoading", \BoardState.isLoading),
      Coded(2, "fact", \BoardState.fact), Coded(3, "alerts", \BoardState.alerts),
      Coded(4, "panel", \BoardState.panel), Coded(5, "login", \BoardState.login),
      Coded(6, "rows", \BoardState.rows), Coded(7, "log", \BoardState.log),
    ]
  }
}

enum PanelAction: Equatable {
  case set(Int)
  case note(String?)
}

enum BoardAction: Equatable {
  case increment
  case add(Int)
  case load(Bool)
  case fact(String)
  case alert(String)
  case burst(Int)
  case logIn, logOut
  case panel(PanelAction)
  case login(PanelAction)
  case row(Int, PanelAction)
  case addRow(Int)
  case removeRow(Int)
  case refuse
}

/// Changes the board for each action; a test supplies the effects as `work`.
struct Board: Reducer {
  var work: @Sendable (BoardAction, BoardState) -> Effect<BoardAction> = { _, _ in .none }

  func reduce(
    into state: inout BoardState, action: BoardAction
  ) throws(Rejection) -> Effect<BoardAction> {
    switch action {
    case .increment: state.count += 1
    case .add(let number): state.log.append(number)
    case .load(let isLoading): state.isLoading = isLoading
    case .fact(let fact): state.fact = fact
    case .alert(let text): state.alerts.wrappedValue = text
    case .burst(let rest):
      state.count += 1
      if rest > 1 { return .send(.burst(rest - 1)) }
    case .logIn: state.login = Panel()
    case .logOut: state.login = nil
    case .panel(let action): action.apply(to: &state.panel)
    case .login(let action): if let panel = state.login { state.login = action.applied(to: panel) }
    case .row(let id, let action): state.rows.modifyValue(forKey: id) { action.apply(to: &$0) }
    case .addRow(let id): state.rows[id] = Panel()
    case .removeRow(let id): state.rows[id] = nil
    case .refuse: throw Rejection(.refused, "the board refuses")
    }
    return work(action, state)
  }
}

extension PanelAction {
  func applied(to panel: Panel) -> Panel {
    var panel = panel
    apply(to: &panel)
    return panel
  }

  func apply(to panel: inout Panel) {
    switch self {
    case .set(let value): panel.value = value
    case .note(let note): panel.note = note
    }
  }
}

// MARK: Forms

/// An action that is encoded as words.
protocol WrittenAction: SynchronizableAction, SynchronizableScalar, CasePathable, Equatable {
  init?(words: ArraySlice<Substring>)
  var words: [String] { get }
}

extension WrittenAction {
  func encode(into encoder: inout CBOREncoder) {
    encoder.encode(words.joined(separator: " "))
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    let text = try decoder.text()
    guard let action = Self(words: text.split(separator: " ")[...]) else {
      throw CBORError(.unknownCase(0), at: start)
    }
    self = action
  }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
}

extension PanelAction: WrittenAction {
  var name: String { words[0] }

  var words: [String] {
    switch self {
    case .set(let value): ["set", "\(value)"]
    case .note(let note): ["note", note ?? ""]
    }
  }

  init?(words: ArraySlice<Substring>) {
    switch words.first {
    case "set": self = .set(words.last.flatMap { Int($0) } ?? 0)
    case "note": self = .note(words.count > 1 ? words.last.map(String.init) : nil)
    default: return nil
    }
  }

  struct AllCasePaths: Sendable {
    var set: CasePath<PanelAction, Int> {
      CasePath(
        embed: { .set($0) }, extract: { if case .set(let value) = $0 { value } else { nil } })
    }
  }
  static var allCasePaths: AllCasePaths { AllCasePaths() }
}

extension BoardAction: WrittenAction {
  var name: String {
    switch self {
    case .panel(let action): "panel.\(action.name)"
    case .login(let action): "login.\(action.name)"
    case .row(_, let action): "row.\(action.name)"
    default: words[0]
    }
  }

  var words: [String] {
    switch self {
    case .increment: ["increment"]
    case .add(let number): ["add", "\(number)"]
    case .load(let isLoading): ["load", "\(isLoading)"]
    case .fact(let fact): ["fact", fact]
    case .alert(let text): ["alert", text]
    case .burst(let rest): ["burst", "\(rest)"]
    case .logIn: ["logIn"]
    case .logOut: ["logOut"]
    case .panel(let action): ["panel"] + action.words
    case .login(let action): ["login"] + action.words
    case .row(let id, let action): ["row", "\(id)"] + action.words
    case .addRow(let id): ["addRow", "\(id)"]
    case .removeRow(let id): ["removeRow", "\(id)"]
    case .refuse: ["refuse"]
    }
  }

  init?(words: ArraySlice<Substring>) {
    let rest = words.dropFirst()
    let number = rest.first.flatMap { Int($0) } ?? 0
    let text = rest.first.map(String.init) ?? ""
    switch words.first {
    case "increment": self = .increment
    case "add": self = .add(number)
    case "load": self = .load(text == "true")
    case "fact": self = .fact(text)
    case "alert": self = .alert(text)
    case "burst": self = .burst(number)
    case "logIn": self = .logIn
    case "logOut": self = .logOut
    case "addRow": self = .addRow(number)
    case "removeRow": self = .removeRow(number)
    case "refuse": self = .refuse
    case "panel":
      guard let action = PanelAction(words: rest) else { return nil }
      self = .panel(action)
    case "login":
      guard let action = PanelAction(words: rest) else { return nil }
      self = .login(action)
    case "row":
      guard let action = PanelAction(words: rest.dropFirst()) else { return nil }
      self = .row(number, action)
    default: return nil
    }
  }

  struct AllCasePaths: Sendable {
    var panel: CasePath<BoardAction, PanelAction> {
      CasePath(
        embed: { .panel($0) }, extract: { if case .panel(let inner) = $0 { inner } else { nil } })
    }
    var login: CasePath<BoardAction, PanelAction> {
      CasePath(
        embed: { .login($0) }, extract: { if case .login(let inner) = $0 { inner } else { nil } })
    }
    var row: CasePath<BoardAction, (Int, PanelAction)> {
      CasePath(
        embed: { .row($0.0, $0.1) },
        extract: { if case .row(let id, let inner) = $0 { (id, inner) } else { nil } })
    }
  }
  static var allCasePaths: AllCasePaths { AllCasePaths() }
}
