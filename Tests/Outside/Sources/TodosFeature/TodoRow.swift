import Lockstep

@ObservableState public struct Todo: Equatable, Identifiable {
  public var id: Int
  public var title: String
  public var isCompleted = false
  /// The steps of this todo, which are todos too.
  public var parts: SyncMap<Int, Todo> = [:]

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

/// One todo: a feature whose rows are of its own type.
public struct TodoRow: Reducer {
  public typealias State = Todo

  @Action public indirect enum Action: Equatable, Sendable {
    case toggle
    case add(String)
    case part(Todo.ID, Action)
  }

  public init() {}

  public var body: some Reducer<Todo, Action> {
    Reduce { state, action in
      switch action {
      case .toggle: state.isCompleted.toggle()
      case .add(let title):
        let id = state.parts.count + 1
        state.parts[id] = Todo(id: id, title: title)
      case .part: break
      }
      return .none
    }
    .forEach(\.parts, action: \.part) { TodoRow() }
  }
}
