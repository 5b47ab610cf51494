import Lockstep
import LockstepStore
import LockstepTesting
import Synchronization
import Testing
import TodosFeature

@Suite struct TodosTests {
  private static let milk = Todo(id: 1, title: "milk")
  private static let eggs = Todo(id: 2, title: "eggs")
  private static let bread = Todo(id: 3, title: "bread")
  private static let offline = BackendError.unavailable(reason: "offline")
  /// In tests the identifiers of drafts count from 0.
  private static let first = UniqueID(high: 0, low: 0)

  private static func loaded(_ todos: Todo...) -> Todos.State {
    var state = Todos.State()
    for todo in todos { state.todos[todo.id] = todo }
    return state
  }

  /// A list whose backend takes a second.
  private func store(
    _ state: Todos.State = Todos.State(),
    page: @escaping @Sendable (Int) -> Result<Page, BackendError> = { _ in .failure(offline) },
    create: @escaping @Sendable (String) -> Result<Todo, BackendError> = { _ in .failure(offline) }
  ) -> TestStore<Todos> {
    TestStore(initialState: state) {
      Todos()
    } withDependencies: { dependencies in
      let clock = dependencies.clock
      dependencies.backend = Backend(
        page: { number in
          try? await clock.pause(for: .seconds(1))
          return page(number)
        },
        create: { title in
          try? await clock.pause(for: .seconds(1))
          return create(title)
        })
    }
  }

  // MARK: Readers

  @Test func `a reader of the list is shown until its process ends`() async {
    let store = store()
    await store.send(.readers(.enter("Ann")), from: .client(session: 1)) { $0.readers[1] = "Ann" }
    await store.send(.readers(.enter("Bob")), from: .client(session: 2)) { $0.readers[2] = "Bob" }
    await store.tell(.lost(session: 1))
    await store.tell(.ended(session: 1, reason: .exited)) { $0.readers[1] = nil }
    #expect(store.state.readers.map(\.entry) == ["Bob"])
  }

  // MARK: Loading

  @Test("RED-13: loading shows the spinner, then the todos")
  func load() async {
    var state = Self.loaded(Self.bread)
    state.error = Self.offline
    let page = Page(number: 0, todos: [Self.milk, Self.eggs], hasMore: false)
    let store = store(state, page: { _ in .success(page) })
    await store.send(.loadTodos) {
      $0.isLoading = true
      $0.error = nil
    }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.todosLoaded(.success(page))) {
      $0.isLoading = false
      $0.todos = [1: Self.milk, 2: Self.eggs]
    }
  }

  @Test("RED-13, RED-20: a failure is a value in the state, and the todos are kept")
  func loadFails() async {
    let store = store(Self.loaded(Self.milk))
    await store.send(.loadTodos) { $0.isLoading = true }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.todosLoaded(.failure(Self.offline))) {
      $0.isLoading = false
      $0.error = Self.offline
    }
    #expect("\(Self.offline)" == "offline")
  }

  @Test("RED-20: a result with a typed error survives its encoding")
  func resultTravels() throws {
    let results: [Result<Page, BackendError>] = [
      .failure(.badTitle("")), .failure(Self.offline),
      .success(Page(number: 1, todos: [Self.milk], hasMore: true)),
    ]
    for action in results.map({ Todos.Action.todosLoaded($0) }) {
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      let decoded = try CBORDecoder.read(encoder.bytes) { decoder throws(CBORError) in
        try Todos.Action(from: &decoder, seed: .unseeded)
      }
      #expect(decoded == action)
    }
  }

  @Test("RDX-02: the next page is added, if there is one")
  func pagination() async {
    let pages = [
      Page(number: 0, todos: [Self.milk], hasMore: true),
      Page(number: 1, todos: [Self.eggs], hasMore: false),
    ]
    let store = store(page: { .success(pages[$0]) })
    await store.send(.loadTodos) { $0.isLoading = true }
    // Nothing is loaded yet, so there is no next page.
    await store.send(.loadNextPage)
    await store.clock.advance(by: .seconds(1))
    await store.receive(\.todosLoaded) {
      $0.isLoading = false
      $0.todos = [1: Self.milk]
      $0.hasMore = true
    }
    await store.send(.loadNextPage) { $0.isLoading = true }
    // Only one page loads at a time.
    await store.send(.loadNextPage)
    await store.clock.advance(by: .seconds(1))
    await store.receive(\.todosLoaded) {
      $0.isLoading = false
      $0.todos = [1: Self.milk, 2: Self.eggs]
      $0.page = 1
      $0.hasMore = false
    }
    await store.send(.loadNextPage)
  }

  @Test("RED-13: a new load replaces the running one")
  func loadTwice() async {
    let store = store(page: { .success(Page(number: $0, todos: [], hasMore: false)) })
    await store.send(.loadTodos) { $0.isLoading = true }
    await store.clock.advance(by: .milliseconds(500))
    await store.send(.loadTodos)
    #expect(store.runningEffects.count == 1)
    await store.clock.advance(by: .seconds(1))
    await store.receive(\.todosLoaded) { $0.isLoading = false }
  }

  // MARK: Adding

  @Test("RED-13, RDX-02: a todo is shown at once as a draft, until the backend has it")
  func add() async {
    let store = store(Self.loaded(Self.milk), create: { .success(Todo(id: 2, title: $0)) })
    await store.send(.addTodo("eggs")) {
      $0.drafts[Self.first] = Draft(id: Self.first, title: "eggs")
    }
    await store.receive(.drafts(id: Self.first, action: .save))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.drafts(id: Self.first, action: .todoAdded(.success(Self.eggs)))) {
      $0.drafts = [:]
      $0.todos[2] = Self.eggs
    }
  }

  @Test("RED-13, RDX-02: a draft that the backend refused has the reason, and can be saved again")
  func addFails() async {
    let answers = Mutex<[Result<Todo, BackendError>]>([.failure(Self.offline), .success(Self.milk)])
    let store = store(create: { _ in answers.withLock { $0.removeFirst() } })
    await store.send(.addTodo("milk")) {
      $0.drafts[Self.first] = Draft(id: Self.first, title: "milk")
    }
    await store.receive(.drafts(id: Self.first, action: .save))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.drafts(id: Self.first, action: .todoAdded(.failure(Self.offline)))) {
      $0.drafts[Self.first]?.failure = Self.offline
    }
    await store.send(.drafts(id: Self.first, action: .save)) {
      $0.drafts[Self.first]?.failure = nil
    }
    // It is already being saved.
    await store.send(.drafts(id: Self.first, action: .save))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.drafts(id: Self.first, action: .todoAdded(.success(Self.milk)))) {
      $0.drafts = [:]
      $0.todos = [1: Self.milk]
    }
  }

  @Test("2.1.9: discarding a draft cancels its saving, and no other")
  func discard() async {
    let second = UniqueID(high: 0, low: 1)
    let store = store(create: { .success(Todo(id: 1, title: $0)) })
    await store.send(.addTodo("eggs")) {
      $0.drafts[Self.first] = Draft(id: Self.first, title: "eggs")
    }
    await store.receive(\.drafts)
    await store.send(.addTodo("milk")) { $0.drafts[second] = Draft(id: second, title: "milk") }
    await store.receive(\.drafts)
    #expect(store.runningEffects.count == 2)
    await store.send(.discardDraft(Self.first)) { $0.drafts[Self.first] = nil }
    #expect(store.runningEffects.count == 1)
    await store.clock.advance(by: .seconds(1))
    await store.receive(.drafts(id: second, action: .todoAdded(.success(Self.milk)))) {
      $0.drafts = [:]
      $0.todos = [1: Self.milk]
    }
    await store.finish()
  }

  // MARK: Changing

  @Test("RED-13: toggling changes a present todo, and does nothing for an absent one")
  func toggle() async {
    let store = store(Self.loaded(Self.milk))
    await store.send(.toggleTodo(1)) { $0.todos[1]?.isCompleted = true }
    await store.send(.toggleTodo(1)) { $0.todos[1]?.isCompleted = false }
    await store.send(.toggleTodo(2))
  }

  @Test("RDX-02: only a present todo can be selected")
  func select() async {
    let store = store(
      Self.loaded(Self.milk),
      page: { .success(Page(number: $0, todos: [Self.eggs], hasMore: false)) })
    await store.send(.selectTodo(2))
    await store.send(.selectTodo(1)) { $0.selection = 1 }
    await store.send(.loadTodos) { $0.isLoading = true }
    await store.clock.advance(by: .seconds(1))
    await store.receive(\.todosLoaded) {
      $0.isLoading = false
      $0.todos = [2: Self.eggs]
      $0.selection = nil
    }
  }

  @Test("TCA-12: a store of one draft, whose actions are sent in a case with labels")
  func scopedDraft() async {
    var state = Todos.State()
    state.drafts[Self.first] = Draft(id: Self.first, title: "milk", failure: Self.offline)
    let store = Store.unchecked(initialState: state) {
      Todos()
    } withDependencies: {
      $0.backend = Backend(
        page: { _ in .failure(Self.offline) }, create: { _ in .success(Self.milk) })
    }
    let draft = store.scope(state: \.drafts, id: Self.first, action: \.drafts)
    #expect(draft.state?.title == "milk")
    await draft.send(.save).finish()
    #expect(draft.state == nil && store.state.todos == [1: Self.milk])
  }

  @Test("RDX-02: files contain todos and drafts, not the state of the screen")
  func ephemeral() {
    var state = Self.loaded(Self.milk)
    state.isLoading = true
    state.error = Self.offline
    state.selection = 1
    state.resetEphemeral()
    #expect(state == Self.loaded(Self.milk))
  }
}
