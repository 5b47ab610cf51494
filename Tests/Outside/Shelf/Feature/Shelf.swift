import Lockstep

/// A shelf of records in an order, whose player is set by fields, and whose reviews are loaded: a feature
/// that uses what features are made of.
public struct Shelf: Reducer {
  @ObservableState public struct State: Equatable {
    public var records: SyncIdentifiedArray<Record> = []
    @Settable public var volume = 5
    @Settable public var owner = ""
    /// How often the volume has changed.
    public var turns = 0
    public var review = Loadable<String, String>()
    @Ephemeral public var listeners = Present<String>()
    public var box = Part(id: 0, title: "box")
    public var room = Room.State()
    /// What is written on a sleeve; nil while nothing is being written.
    public var note: Note.State?
    public var screen = Screen.State.list
    public var search = Search.State()

    public init() {}

    public static let wild = Selector.filter(\Self.records) { $0.mood == .wild }
  }

  @Action public enum Action: Equatable, Sendable {
    case put(String)
    case move(Record.ID, to: Int)
    case record(Record.ID, RecordAction)
    /// Ends the playing of every record.
    case silence
    case set(State.Setting)
    case review(LoadableAction<String, String>)
    case listeners(Presence<String>.Action)
    case box(Parts.Action)
    case room(Room.Action)
    case beginNote
    case endNote
    case note(Note.Action)
    case screen(Screen.Action)
    case search(ReactorAction<Search>)
  }

  private let searches: Bool

  @Dependency(\.critic) private var critic

  /// With `searches` there is a search, whose stream of actions waits outside of what a seed decides: a
  /// `SyncTestStore` cannot run it.
  public init(searches: Bool = false) { self.searches = searches }

  public var body: some Reducer<State, Action> {
    BindingReducer()
      .onChange(of: \.volume) { _, _ in
        Reduce { state, _ in
          state.turns += 1
          return .none
        }
      }
    Scope(state: \.listeners, action: \.listeners) { Presence<String>() }
    Scope(state: \.box, action: \.box) { Parts() }
    Scope(state: \.room, action: \.room) { Room() }
    Scope(state: \.screen, action: \.screen) { Screen() }
    if searches { Scope(state: \.search, action: \.search) { Search().reducer } }
    Reduce { state, action in
      switch action {
      case .put(let title):
        state.records.append(Record(id: state.records.count + 1, title: title))
      case .move(let id, let index): state.records.move(id: id, to: index)
      case .silence:
        for id in state.records.ids { state.records[id: id]?.isPlaying = false }
        return .cancel(id: "play")
      case .beginNote: state.note = Note.State()
      case .endNote: state.note = nil
      case .record, .set, .review, .listeners, .box, .room, .note, .screen, .search: break
      }
      return .none
    }
    .forEach(\.records, action: \.record) { Player() }
    .ifLet(\.note, action: \.note) { Note() }
    .loading(\.review, action: \.review, for: \.volume) { volume in
      try await critic.review(volume)
    }
  }
}

/// Refuses a high volume while there are records.
public struct Neighbour: Middleware {
  public init() {}

  public func before(
    _ action: inout Shelf.Action, state: Shelf.State,
    context: inout MiddlewareContext<Shelf.Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    if case .set(.volume(11...)) = action, !state.records.isEmpty {
      throw Rejection(.refused, "the neighbours sleep")
    }
    return .proceed
  }
}

/// Reviews what is played.
public struct Critic: Sendable {
  public var review: @Sendable (_ volume: Int) async throws -> String

  public init(review: @escaping @Sendable (Int) async throws -> String) { self.review = review }
}

private enum CriticKey: DependencyKey {
  static var liveValue: Critic { Critic { "heard at \($0)" } }
}

extension DependencyValues {
  public var critic: Critic {
    get { self[CriticKey.self] }
    set { self[CriticKey.self] = newValue }
  }
}
