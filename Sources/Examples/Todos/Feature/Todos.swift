public import Lockstep

/// A list of todos that a backend keeps.
public struct Todos: Reducer {
  @ObservableState public struct State: Equatable, Sendable {
    /// The backend's todos, as far as they are loaded.
    public var todos: SyncMap<Todo.ID, Todo> = [:]
    /// The todos that the backend does not have yet.
    public var drafts: SyncMap<Draft.ID, Draft> = [:]
    /// The number of the last page that is loaded.
    public var page = 0
    public var hasMore = false
    /// The todo that every client shows in full.
    @Ephemeral public var selection: Todo.ID?
    @Ephemeral public var isLoading = false
    @Ephemeral public var error: BackendError?
    /// The names of the clients that have the list open.
    @Ephemeral public var readers = Present<String>()

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable {
    case loadTodos
    case loadNextPage
    case todosLoaded(Result<Page, BackendError>)
    case addTodo(String)
    case toggleTodo(Todo.ID)
    case selectTodo(Todo.ID)
    case discardDraft(Draft.ID)
    case drafts(id: Draft.ID, action: DraftFeature.Action)
    case readers(Presence<String>.Action)
  }

  private enum CancelID { case load }

  @Dependency(\.backend) private var backend
  @Dependency(\.uuid) private var uuid

  public init() {}

  public var body: some Reducer<State, Action> {
    Scope(state: \.readers, action: \.readers) { Presence<String>() }
    Reduce { state, action in
      switch action {
      case .loadTodos: return load(page: 0, &state)
      case .loadNextPage:
        guard state.hasMore, !state.isLoading else { return .none }
        return load(page: state.page + 1, &state)
      case .todosLoaded(let result):
        state.isLoading = false
        switch result {
        case .success(let page): show(page, &state)
        case .failure(let error): state.error = error
        }
        return .none
      case .addTodo(let title):
        let draft = Draft(id: uuid(), title: title)
        state.drafts[draft.id] = draft
        return .send(.drafts(id: draft.id, action: .save))
      case .toggleTodo(let id):
        state.todos[id]?.isCompleted.toggle()
        return .none
      case .selectTodo(let id):
        if state.todos.contains(id) { state.selection = id }
        return .none
      case .discardDraft(let id):
        state.drafts[id] = nil
        return .none
      case .drafts(let id, .todoAdded(.success(let todo))):
        state.drafts[id] = nil
        state.todos[todo.id] = todo
        return .none
      case .drafts, .readers: return .none
      }
    }
    .forEach(\.drafts, action: \.drafts) { DraftFeature() }
  }

  private func load(page: Int, _ state: inout State) -> Effect<Action> {
    state.isLoading = true
    state.error = nil
    return .run(name: "load") { [backend] send in
      await send(.todosLoaded(backend.page(page)))
    }
    .cancellable(id: CancelID.load, cancelInFlight: true)
  }

  /// The first page replaces the list.
  private func show(_ page: Page, _ state: inout State) {
    if page.number == 0 { state.todos.removeAll() }
    for todo in page.todos { state.todos[todo.id] = todo }
    state.page = page.number
    state.hasMore = page.hasMore
    if let selection = state.selection, !state.todos.contains(selection) { state.selection = nil }
  }
}
