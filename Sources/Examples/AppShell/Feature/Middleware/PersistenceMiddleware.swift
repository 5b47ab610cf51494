public import Lockstep

/// Loads the stored state when the daemon launches, and stores every changed state.
public struct PersistenceMiddleware: Middleware {
  public let name = "persistence"
  @Dependency(\.storage) private var storage

  public init() {}

  public func after(
    _ action: AppAction, state: AppState, reduction: Reduction,
    context: MiddlewareContext<AppAction>
  ) -> Effect<AppAction> {
    switch (action, reduction) {
    case (.launch, _): load()
    case (.restore, _): .none
    case (_, .changed): save(state)
    case (_, _): .none
    }
  }

  private func load() -> Effect<AppAction> {
    .run(name: "load") { [storage] send in
      if let stored = try await storage.load() { await send(.restore(stored)) }
    }
  }

  private func save(_ state: AppState) -> Effect<AppAction> {
    var stored = state
    stored.resetEphemeral()
    return .run(name: "save") { [storage, stored] _ in try await storage.save(stored) }
      .cancellable(id: CancelID.save, cancelInFlight: true)
  }

  private enum CancelID { case save }
}

/// Keeps the state while no daemon runs.
public struct Storage: Sendable {
  /// The latest saved state; nil if none was saved.
  public var load: @Sendable () async throws -> AppState?
  /// Saves a state. Before a newer state is saved, the task of the older one is cancelled.
  public var save: @Sendable (AppState) async throws -> Void

  public init(
    load: @escaping @Sendable () async throws -> AppState?,
    save: @escaping @Sendable (AppState) async throws -> Void
  ) {
    self.load = load
    self.save = save
  }
}

extension DependencyValues {
  public var storage: Storage {
    get { self[StorageKey.self] }
    set { self[StorageKey.self] = newValue }
  }
}

/// By default nothing is stored.
private enum StorageKey: DependencyKey {
  static var liveValue: Storage { Storage(load: { nil }, save: { _ in }) }
  static var testValue: Storage { liveValue }
}
