import Lockstep
import LockstepClient
import TodosFeature

/// Loads the todos, completes the first, and says what its own mirror then shows.
@main struct Client {
  static func main() async throws {
    let mirror = try await MirrorStore<Todos>.connect()
    try await mirror.send(.loadTodos)
    for await todos in mirror.observe(\.todos) where todos.count == 2 { break }
    let id = 1
    try await mirror.send(.toggle(id))
    print(mirror.todos[id]?.title ?? "nothing", mirror.todos[id]?.isCompleted ?? false)
    await mirror.finish()
  }
}
