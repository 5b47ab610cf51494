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
    /// The name of the critic whose review was asked for.
    public var reviewer = ""
    @Ephemeral public var listeners = Present<String>()
    public var box = Part(id: 0, title: "box")
    public var room = Room.State()
    /// What is written on a sleeve; nil while nothing is being written.
    public var note: Note.State?
    public var screen = Screen.State.list
    public var search = Search.State()
    public var sides: TransformedState<Sides.State> = TransformedState(Sides.State(), of: Sides())
    public var left = Crate.State()
    public var right = Crate.State()

    public init() {}

    public static let wild = Selector.filter(\Self.records) { $0.mood == .wild }
  }

  @Action public enum Action: Equatable, Sendable {
    case put(String)
    case take(Record.ID)
    case move(Record.ID, to: Int)
    case record(Record.ID, RecordAction)
    /// Ends the playing of every record, also in the crates.
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
    case sides(ReactorAction<Sides>)
    case left(Crate.Action)
    case right(Crate.Action)
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
    Scope(state: \.sides, action: \.sides) { Sides().reducer }
    Scope(state: \.left, action: \.left) { Crate() }
    Scope(state: \.right, action: \.right) { Crate() }
    if searches { Scope(state: \.search, action: \.search) { Search().reducer } }
    Reduce { state, action in
      switch action {
      case .put(let title):
        let id = (state.records.ids.max() ?? 0) + 1
        state.records.append(Record(id: id, title: title))
      case .take(let id): state.records.remove(id: id)
      case .move(let id, let index): state.records.move(id: id, to: index)
      case .silence:
        state.records.silence()
        state.left.records.silence()
        state.right.records.silence()
        return .cancel(id: "play")
      case .beginNote: state.note = Note.State()
      case .endNote: state.note = nil
      case .review(.load), .review(.retry): state.reviewer = critic.name
      case .record, .set, .review, .listeners, .box, .room, .note, .screen, .search, .sides, .left,
        .right:
        break
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
  public var name: String
  public var review: @Sendable (_ volume: Int) async throws -> String

  public init(
    name: String = "", review: @escaping @Sendable (_ volume: Int) async throws -> String
  ) {
    self.name = name
    self.review = review
  }
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
