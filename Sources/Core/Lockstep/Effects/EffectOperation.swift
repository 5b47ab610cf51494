/// The operation of an effect, ready to be run as a task.
public struct EffectOperation<Action: Sendable>: Sendable {
  public let id: EffectID
  let work: Effect<Action>.Work
  let actionName: String
  let scope: [EffectKey]

  public var name: String { work.name }
  public var priority: TaskPriority? { work.priority }

  /// Note the start of the operation. The shell calls it when it is ordered to start the effect,
  /// in the sequence of its orders.
  package func enter(_ tasks: inout NamedTasks) { work.entry?(&tasks, scope) }

  /// Run the operation to its end. Returns the error that it did not catch, as text.
  ///
  /// `host` is notified of the tasks that the operation runs under names of their own; `deliver`
  /// passes an action to the store, and returns when it has been reduced.
  package func run(
    host: any EffectHost, deliver: @escaping @Sendable (Action) async -> Void
  ) async -> String? {
    let send = Send(deliver)
    return await DependencyValues.$current.withValue(work.dependencies) {
      await EffectSurroundings.$current.withValue(.init(host: host, scope: scope)) {
        do {
          try await work.operation(send)
          return nil
        } catch {
          return await handle(error, send)
        }
      }
    }
  }

  private func handle(_ error: any Error, _ send: Send<Action>) async -> String? {
    if error is CancellationError || Task.isCancelled { return nil }
    guard let handler = work.handler else { return "\(error)" }
    await handler(error, send)
    return nil
  }
}

/// The shell that runs effects, as the code inside them sees it.
package protocol EffectHost: Sendable {
  /// The executor of effects; nil for Swift's global one. An unstructured task (`Task { }`) does not
  /// inherit it, so one that Lockstep starts inside an effect must be given it: otherwise a test
  /// store would not know that the effect is still at work.
  var effectExecutor: (any TaskExecutor)? { get }
  /// Run a body with the tasks that run under names of their own. Returns nil when the shell is gone.
  func withNamedTasks<R: Sendable>(
    _ body: @escaping @Sendable (inout NamedTasks) -> R
  ) async -> R?
  /// Cancel everything that runs under a name, effects and parts of effects.
  func cancel(_ name: ScopedEffectKey) async
  /// Run a body with the store's state after the last reduction. Returns nil when the shell is gone.
  func withState<R: Sendable>(_ body: @escaping @Sendable (any Sendable) -> R) async -> R?
}

extension EffectHost {
  package var effectExecutor: (any TaskExecutor)? { nil }

  /// Record a task that runs under a name, so that cancelling the name cancels it; with
  /// `cancelInFlight`, tasks that already run under the name are cancelled first. Returns its
  /// number.
  fileprivate func began(
    _ name: ScopedEffectKey, cancelInFlight: Bool, cancel: @escaping @Sendable () -> Void
  ) async -> UInt64 {
    if cancelInFlight { await self.cancel(name) }
    return await withNamedTasks { $0.begin(name, cancel: cancel) } ?? 0
  }

  /// Remove a task that has ended.
  fileprivate func ended(_ name: ScopedEffectKey, _ number: UInt64) async {
    _ = await withNamedTasks { $0.end(name, number) }
  }
}

struct EffectSurroundings: Sendable {
  @TaskLocal static var current: EffectSurroundings?
  let host: any EffectHost
  let scope: [EffectKey]

  func name(_ id: some Hashable & Sendable) -> ScopedEffectKey {
    ScopedEffectKey(scope: scope, key: EffectKey(id))
  }

  /// The state of the feature whose effect it is, after the last reduction. O(the depth of the
  /// feature).
  ///
  /// Throws `CancellationError` when the feature is a child that was removed, or the store is gone,
  /// and `NoCurrentState` when its state is of another type.
  func state<State: Sendable>(as type: State.Type) async throws -> State {
    let found = await host.withState { [scope] root -> Result<State, any Error> in
      guard let part = scope.reduce(root as Any?, { $0.flatMap($1.child(in:)) }) else {
        return .failure(CancellationError())
      }
      if let state = part as? State { return .success(state) }
      guard let state = (part as? any ShowingState)?.shownState as? State else {
        return .failure(NoCurrentState())
      }
      return .success(state)
    }
    guard let found else { throw CancellationError() }
    return try found.get()
  }
}

/// Run a part of an effect under a name of its own, by which the reducers and effects of the
/// feature, and of the enclosing features, can cancel it. With `cancelInFlight`, everything that
/// they run under the name is cancelled first. Outside of effects the operation just runs.
public func withTaskCancellation<R: Sendable>(
  id: some Hashable & Sendable, cancelInFlight: Bool = false,
  operation: @escaping @Sendable () async throws -> R
) async throws -> R {
  guard let surroundings = EffectSurroundings.current else { return try await operation() }
  let name = surroundings.name(id)
  let (cancelled, cancel) = AsyncStream<Never>.makeStream()
  let number = await surroundings.host.began(name, cancelInFlight: cancelInFlight) {
    cancel.finish()
  }
  let result = await result(of: operation, until: cancelled)
  await surroundings.host.ended(name, number)
  return try result.get()
}

/// The result of an operation, which is cancelled when the stream ends.
private func result<R: Sendable>(
  of operation: @escaping @Sendable () async throws -> R, until cancelled: AsyncStream<Never>
) async -> Result<R, any Error> {
  await withTaskGroup(of: Result<R, any Error>?.self) { group in
    group.addTask {
      do { return .success(try await operation()) } catch { return .failure(error) }
    }
    group.addTask {
      for await _ in cancelled {}
      return nil
    }
    defer { group.cancelAll() }
    while let outcome = await group.next() {
      if let outcome { return outcome }
      group.cancelAll()
    }
    return .failure(CancellationError())
  }
}

extension Task where Success == Never, Failure == Never {
  /// Cancel everything that the calling effect's feature, and the features inside it, run under a
  /// name: effects, and parts of effects (`withTaskCancellation`). Outside of effects nothing is
  /// cancelled, because the name then belongs to no feature.
  public static func cancel(id: some Hashable & Sendable) async {
    guard let surroundings = EffectSurroundings.current else { return }
    await surroundings.host.cancel(surroundings.name(id))
  }
}
