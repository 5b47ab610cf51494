public import Lockstep

/// Keeps the todos. It answers with values, failures included, so that the answers can be encoded.
public struct Backend: Sendable {
  /// A page of the list.
  public var page: @Sendable (_ number: Int) async -> Result<Page, BackendError>
  /// Keep a new todo, and give it its identifier.
  public var create: @Sendable (_ title: String) async -> Result<Todo, BackendError>

  public init(
    page: @escaping @Sendable (_ number: Int) async -> Result<Page, BackendError>,
    create: @escaping @Sendable (_ title: String) async -> Result<Todo, BackendError>
  ) {
    self.page = page
    self.create = create
  }

  /// No backend: everything fails.
  public static let missing = Backend(
    page: { _ in .failure(.unavailable(reason: "there is no backend")) },
    create: { _ in .failure(.unavailable(reason: "there is no backend")) })
}

/// The reason why a request to the backend failed.
@ObservableState(frozen: true) public enum BackendError: Error, Equatable, Sendable {
  case unavailable(reason: String)
  case badTitle(String)
}

extension BackendError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unavailable(let reason): reason
    case .badTitle(let title): "\"\(title)\" is no title: it must be one line, and not empty"
    }
  }
}

private enum BackendKey: DependencyKey {
  static let liveValue = Backend.missing
}

extension DependencyValues {
  public var backend: Backend {
    get { self[BackendKey.self] }
    set { self[BackendKey.self] = newValue }
  }
}
