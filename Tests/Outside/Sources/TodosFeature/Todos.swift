import Lockstep

public struct Backend: Sendable {
  public var fetch: @Sendable () async throws -> [Todo]

  public init(fetch: @escaping @Sendable () async throws -> [Todo]) { self.fetch = fetch }
}

private enum BackendKey: DependencyKey {
  static var liveValue: Backend {
    Backend { [Todo(id: 1, title: "milk"), Todo(id: 2, title: "bread")] }
  }
}

extension DependencyValues {
  public var todoBackend: Backend {
    get { self[BackendKey.self] }
    set { self[BackendKey.self] = newValue }
  }
}

public struct Todos: Reducer {
  @ObservableState public struct State: Equatable {
    public var todos: SyncMap<Todo.ID, Todo> = [:]
    public var isLoading = false
    public var error: String?

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable {
    case loadTodos, todosLoaded([Todo]), failed(String), toggle(Todo.ID)
    case todo(Todo.ID, TodoRow.Action)
  }

  @Dependency(\.todoBackend) var backend

  public init() {}

  public var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .loadTodos:
        state.isLoading = true
        state.error = nil
        return .run { send in
          await send(.todosLoaded(try await backend.fetch()))
        } catch: { error, send in
          await send(.failed("\(error)"))
        }
      case .todosLoaded(let todos):
        state.isLoading = false
        for todo in todos { state.todos[todo.id] = todo }
      case .failed(let reason):
        state.isLoading = false
        state.error = reason
      case .toggle(let id): state.todos[id]?.isCompleted.toggle()
      case .todo: break
      }
      return .none
    }
    .forEach(\.todos, action: \.todo) { TodoRow() }
  }
}
