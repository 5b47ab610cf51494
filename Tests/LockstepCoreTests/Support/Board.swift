import CBOR
import Lockstep
import Values

/// A child that may be absent, or one of several; it has a child of its own.
struct Row: Reducer {
  struct State: Described, Identifiable {
    var id = 0
    var log: [String] = []
    var detail: Detail?

    struct Detail: Described {
      var log: [String] = []
    }
  }

  enum Action: DescribedAction, CasePathable {
    case start, stop, ended, refuse, open, close
    case detail(Act)

    struct AllCasePaths: Sendable {
      var detail: CasePath<Action, Act> {
        CasePath(
          embed: { .detail($0) }, extract: { if case .detail(let act) = $0 { act } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce { (state: inout State, action: Action) throws(Rejection) in
      state.log.append(action.name)
      switch action {
      case .start: return .job("row").cancellable(id: "work")
      case .stop: return .cancel(id: "work")
      case .refuse: throw Rejection(.refused, "the row refuses")
      case .open: state.detail = State.Detail()
      case .close: state.detail = nil
      case .ended, .detail: break
      }
      return .none
    }
    .ifLet(\.detail, action: \.detail) {
      Reduce<State.Detail, Act> { state, action in
        state.log.append(action.name)
        return action == "start" ? .job("detail").cancellable(id: "work") : .none
      }
    }
  }
}

/// A parent with numbered rows, and with a state that notes its changes.
struct Board: Reducer {
  struct State: Journaled, Equatable {
    var rows = SyncMap<Int, Row.State>()
    /// Not encoded.
    var log: [String] = []

    init(rows: Int...) {
      for number in rows { self.rows[number] = Row.State(id: number) }
    }

    func isSame(as other: State) -> Bool { rows.isSame(as: other.rows) }
    func encode(into encoder: inout CBOREncoder) { rows.encode(into: &encoder) }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      rows = try SyncMap(from: &decoder, seed: seed)
    }
    func encodeDifference(from old: State, into encoder: inout CBOREncoder) -> Bool {
      rows.encodeDifference(from: old.rows, into: &encoder)
    }
    mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      try rows.apply(patch: &decoder, seed: seed)
    }
    func digest(seed: HashSeed) -> UInt64 { rows.digest(seed: seed) }
    mutating func adopt(seed: HashSeed) { rows.adopt(seed: seed) }
    mutating func settle(into encoder: inout CBOREncoder) -> Bool { rows.settle(into: &encoder) }
    mutating func rollBack() { rows.rollBack() }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
  }

  enum Action: DescribedAction, CasePathable {
    case row(Int, Row.Action)
    case remove(Int)
    case removeThenRefuse(Int)
    case start, cancel

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, (Int, Row.Action)> {
        CasePath(
          embed: { .row($0.0, $0.1) },
          extract: { if case .row(let id, let action) = $0 { (id, action) } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce { (state: inout State, action: Action) throws(Rejection) in
      switch action {
      case .row(let id, let action):
        // The child has already reduced.
        state.log.append("\(id) \(action.name) behind \(state.rows[id]?.log.last ?? "nothing")")
        if action == .ended { state.rows[id] = nil }
      case .remove(let id): state.rows[id] = nil
      case .removeThenRefuse(let id):
        state.rows[id] = nil
        state.rows[99] = Row.State(id: 99)
        throw Rejection(.refused, "the board refuses")
      case .start: return .job("board").cancellable(id: "work")
      case .cancel: return .cancel(id: "work")
      }
      return .none
    }
    .forEach(\.rows, action: \.row) { Row() }
  }
}

/// A parent with one optional child and a property that it observes.
struct Sheet: Reducer {
  struct State: Described {
    var row: Row.State?
    var title = ""
    var log: [String] = []
  }

  enum Action: DescribedAction, CasePathable {
    case row(Row.Action)
    case open(Int)
    case dismiss
    case rename(String)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, Row.Action> {
        CasePath(
          embed: { .row($0) }, extract: { if case .row(let action) = $0 { action } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      switch action {
      case .row(let action):
        state.log.append("\(action.name) behind \(state.row?.log.last ?? "nothing")")
      case .open(let id): state.row = Row.State(id: id)
      case .dismiss: state.row = nil
      case .rename(let title): state.title = title
      }
      return .none
    }
    .ifLet(\.row, action: \.row) { Row() }
    .onChange(of: \.title) { old, new in
      Reduce<State, Action> { state, _ in
        state.log.append("\(old) -> \(new)")
        return .job("rename")
      }
    }
  }
}

/// A state that is an enumeration.
struct Screen: Reducer {
  enum State: Described, CasePathable {
    case list
    case row(Row.State)

    struct AllCasePaths: Sendable {
      var row: CasePath<State, Row.State> {
        CasePath(
          embed: { .row($0) }, extract: { if case .row(let row) = $0 { row } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  enum Action: DescribedAction, CasePathable {
    case row(Row.Action)
    case show(Int?)

    struct AllCasePaths: Sendable {
      var row: CasePath<Action, Row.Action> {
        CasePath(
          embed: { .row($0) }, extract: { if case .row(let action) = $0 { action } else { nil } })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  var body: some Reducer<State, Action> {
    Reduce<State, Action> { state, action in
      if case .show(let id) = action { state = id.map { .row(Row.State(id: $0)) } ?? .list }
      return .none
    }
    .ifCaseLet(\.row, action: \.row) { Row() }
  }
}
