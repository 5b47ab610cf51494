import Lockstep
import LockstepClient
import TodosFeature

/// Loads the todos, completes the first todo and a part of a part of the second, and prints its
/// mirror.
@main struct Client {
  static func main() async throws {
    let mirror = try await MirrorStore<Todos>.connect()
    try await mirror.send(.loadTodos)
    for await todos in mirror.observe(\.todos) where todos.count == 2 { break }
    let id = 1
    try await mirror.send(.toggle(id))
    print(mirror.todos[id]?.title ?? "nothing", mirror.todos[id]?.isCompleted ?? false)

    try await mirror.send(.todo(2, .add("flour")))
    try await mirror.send(.todo(2, .part(1, .add("mill"))))
    try await mirror.send(.todo(2, .part(1, .part(1, .toggle))))
    let part = mirror.todos[2]?.parts[1]?.parts[1]
    print(part?.title ?? "nothing", part?.isCompleted ?? false)
    await mirror.connection.finish()
  }
}
