public import Values

/// The reducer that `loading` returns.
///
/// A request is an effect of two parts: the request itself, then `cancel`, which is sent if the
/// request ends without having sent its outcome. The outcome ends both parts. So `isLoading` ends
/// with the request, also when someone cancels it by its name.
public struct LoadingReducer<
  Base: Reducer, Value: Synchronizable, Failure: Synchronizable, Input: Sendable
>: Reducer where Base.Action: CasePathable {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  typealias Own = LoadableAction<Value, Failure>

  let base: Base
  let property: any WritableKeyPath<Base.State, Loadable<Value, Failure>> & Sendable
  let actions: CaseKeyPath<Base.Action, LoadableAction<Value, Failure>>
  /// The name of the requests; nil for that of the case.
  let name: String?
  let input: @Sendable (Base.State) -> Input
  let request: @Sendable (Input) async throws -> Value
  let failure: @Sendable (any Error) -> Failure

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    let path = Base.Action.allCasePaths[keyPath: actions]
    guard let own = path.extract(from: action) else {
      return try base.reduce(into: &state, action: action)
    }
    let effect = try reduce(into: &state, own, action.name).map { path.embed($0) }
    return .merge(effect, try base.reduce(into: &state, action: action))
  }

  private func reduce(
    into state: inout Base.State, _ action: Own, _ actionName: String
  ) throws(Rejection) -> Effect<Own> {
    switch action {
    case .load: return begin(&state, actionName)
    case .retry:
      return state[keyPath: property].phase == .failed ? begin(&state, actionName) : .none
    case .cancel: state[keyPath: property].cancel()
    case .loaded(let value):
      try requireNoClient()
      state[keyPath: property].succeed(with: value)
    case .failed(let failure):
      try requireNoClient()
      state[keyPath: property].fail(with: failure)
    }
    return .cancel(id: running)
  }

  /// The name of both parts of the effect.
  private var running: RequestKey {
    RequestKey(property: EffectKey(child: property, actions: actions))
  }

  /// An outcome from a client would be a way to set the state.
  private func requireNoClient() throws(Rejection) {
    if case .client(let client)? = DependencyValues.current.origin {
      throw Rejection(.denied, "only the request itself has an outcome, and \(client) sent one")
    }
  }

  private func begin(_ state: inout Base.State, _ actionName: String) -> Effect<Own> {
    state[keyPath: property].begin()
    let name = name ?? Self.caseName(actionName)
    return .concatenate(run(input(state), name).cancellable(id: name), .send(.cancel))
      .cancellable(id: running, cancelInFlight: true)
      .accepted
  }

  private func run(_ input: Input, _ name: String) -> Effect<Own> {
    .run(name: name) { [request, failure] send in
      do {
        let value = try await request(input)
        await send(.loaded(value))
      } catch {
        // Cancelled: the second part of the effect says so.
        if error is CancellationError || Task.isCancelled { return }
        await send(.failed((error as? Failure) ?? failure(error)))
      }
    }
  }

  /// The name of the case that carries the action: `forecast` of `forecast.load`.
  private static func caseName(_ actionName: String) -> String {
    actionName.lastIndex(of: ".").map { String(actionName[..<$0]) } ?? actionName
  }

  /// In an entry of a map `isLoading` is persisted, because an entry is persisted as a whole: so a
  /// daemon that restarts ends what it loaded there.
  public var composedLifecycle: Lifecycle<State, Action> {
    let path = Base.Action.allCasePaths[keyPath: actions]
    let end = Lifecycle<State, Action>.onStartByState { [property] state in
      state[keyPath: property].isLoading ? path.embed(.cancel) : nil
    }
    return .merge(end, base.composedLifecycle)
  }
}

/// Names the running request of a property: distinct from all names of the user's.
private struct RequestKey: Hashable, Sendable, CustomStringConvertible {
  let property: EffectKey
  var description: String { "request" }
}
