/// Hands actions to the store from within an effect.
///
///     .run { send in
///       await send(.loaded(try await backend.fetch()))
///     }
public struct Send<Action: Sendable>: Sendable {
  private let deliver: @Sendable (Action) async -> Void

  public init(_ deliver: @escaping @Sendable (Action) async -> Void) { self.deliver = deliver }

  /// Send an action, and return when it has been reduced. Does nothing once the effect is
  /// cancelled.
  public func callAsFunction(_ action: Action) async {
    if Task.isCancelled { return }
    await deliver(action)
  }

  func map<Child: Sendable>(_ transform: @escaping @Sendable (Child) -> Action) -> Send<Child> {
    Send<Child> { await deliver(transform($0)) }
  }
}
