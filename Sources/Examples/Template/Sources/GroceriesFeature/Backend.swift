import Lockstep

/// Where the items come from: in the daemon this one, in tests the one that a test gives. A test that
/// gives none fails with the name of the dependency.
public struct Backend: Sendable {
  public var fetch: @Sendable () async throws -> [Item]

  public init(fetch: @escaping @Sendable () async throws -> [Item]) { self.fetch = fetch }
}

private enum BackendKey: DependencyKey {
  static var liveValue: Backend {
    Backend { [Item(id: 1, title: "milk"), Item(id: 2, title: "bread")] }
  }
}

extension DependencyValues {
  public var backend: Backend {
    get { self[BackendKey.self] }
    set { self[BackendKey.self] = newValue }
  }
}
