import Lockstep
import LockstepTesting
import Testing
import TodosFeature

@Suite struct TodosTests {
  @Test func `todos are loaded`() async {
    let milk = Todo(id: 1, title: "milk")
    let store = TestStore(initialState: Todos.State()) {
      Todos()
    } withDependencies: {
      $0.todoBackend = Backend { [milk] }
    }
    await store.send(.loadTodos) { $0.isLoading = true }
    await store.receive(\.todosLoaded, [milk]) {
      $0.isLoading = false
      $0.todos[1] = milk
    }
    await store.finish()
  }

  @Test func `a part of a part of a todo is completed`() async {
    var state = Todos.State()
    state.todos[1] = Todo(id: 1, title: "bread")
    state.todos[1]?.parts[1] = Todo(id: 1, title: "flour")
    state.todos[1]?.parts[1]?.parts[1] = Todo(id: 1, title: "mill")
    let store = TestStore(initialState: state) { Todos() }
    await store.send(.todo(1, .part(1, .part(1, .toggle)))) {
      $0.todos[1]?.parts[1]?.parts[1]?.isCompleted = true
    }
    await store.send(.todo(1, .part(1, .part(1, .add("stone"))))) {
      $0.todos[1]?.parts[1]?.parts[1]?.parts[1] = Todo(id: 1, title: "stone")
    }
    await store.finish()
  }
}

/// Scripts/test-outside runs these alone, and expects them to fail.
@Suite struct MustFailTests {
  @Test func mustFail() async {
    var state = Todos.State()
    state.todos[1] = Todo(id: 1, title: "milk")
    let store = TestStore(initialState: state) { Todos() }
    await store.send(.toggle(1)) { $0.todos[1]?.title = "bread" }
  }
}
