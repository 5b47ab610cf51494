import Lockstep

/// Every type in the state is `@ObservableState`, and public as the daemon and the clients use it.
@ObservableState public struct Item: Equatable, Identifiable {
  public var id: Int
  public var title: String
  public var isDone = false

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

public struct Groceries: Reducer {
  @ObservableState public struct State: Equatable {
    public var items: SyncMap<Item.ID, Item> = [:]
    public var isLoading = false
    public var error: String?

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable {
    case load, loaded([Item]), failed(String), toggle(Item.ID)
  }

  @Dependency(\.backend) var backend

  public init() {}

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .load:
      state.isLoading = true
      state.error = nil
      return .run { send in
        await send(.loaded(try await backend.fetch()))
      } catch: { error, send in
        await send(.failed("\(error)"))
      }
    case .loaded(let items):
      state.isLoading = false
      for item in items { state.items[item.id] = item }
    case .failed(let reason):
      state.isLoading = false
      state.error = reason
    case .toggle(let id): state.items[id]?.isDone.toggle()
    }
    return .none
  }
}
