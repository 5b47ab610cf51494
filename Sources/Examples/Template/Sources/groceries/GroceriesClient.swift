import GroceriesFeature
import LockstepClient

/// Loads the items, toggles those whose numbers are given, and prints what its mirror shows then.
@main struct GroceriesClient {
  static func main() async throws {
    let mirror = try await MirrorStore<Groceries>.connect()
    if mirror.items.isEmpty { try await mirror.send(.load) }
    for await isLoading in mirror.observe(\.isLoading) where !isLoading { break }
    if let error = mirror.error { print("not loaded:", error) }

    for id in CommandLine.arguments.dropFirst().compactMap({ Int($0) }) {
      try await mirror.send(.toggle(id))  // The mirror shows it when this returns.
    }
    for item in mirror.items.values.sorted(by: { $0.id < $1.id }) {
      print(item.isDone ? "[x]" : "[ ]", item.title)
    }
    await mirror.connection.finish()
  }
}
