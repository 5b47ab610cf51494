import CBOR
public import Lockstep
public import Values

/// A part of a feature: its state and its actions, as `MirrorStore.scope` shows them.
public enum Part<State: Synchronizable, Action: SynchronizableAction>: Feature {}

extension MirrorStore where F.Action: CasePathable {
  /// A store of a part of the state, and of the actions that concern it: a subscription of its own
  /// on the same connection. Nothing else comes to it. Returns when the part is here.
  ///
  /// The key path leads through fields of structs. An optional part may come and go.
  public func scope<Child: Synchronizable, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Child> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child, ChildAction>> where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(Self.keys(of: property), isolation) { actions.embed($0) }
  }

  /// A store of one entry of a map, which may come and go.
  public func scope<ID: SyncKey, Child: Synchronizable, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, SyncMap<ID, Child>> & Sendable, id: ID,
    action path: CaseKeyPath<F.Action, (ID, ChildAction)>
  ) async throws -> MirrorStore<Part<Child?, ChildAction>> where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(Self.keys(of: property) + [id.pathKey], isolation) {
      actions.embed((id, $0))
    }
  }

  /// A store of a part of a state that may come and go, and the part with it.
  public func scope<
    Wrapped: ObservableState, Child: Synchronizable, ChildAction: SynchronizableAction
  >(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Child> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child?, ChildAction>> where F.State == Wrapped? {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(Wrapped.keys(of: property), isolation) { actions.embed($0) }
  }

  private static func keys(of property: PartialKeyPath<F.State>) -> [PathKey]
  where F.State: ObservableState {
    F.State.keys(of: property)
  }

  private func part<Child: Synchronizable, ChildAction: SynchronizableAction>(
    _ keys: [PathKey], _ isolation: (any Actor)?,
    _ embed: @escaping @Sendable (ChildAction) -> F.Action
  ) async throws -> MirrorStore<Part<Child, ChildAction>> {
    let part = connection.subscribe(to: Path(subscription.path.keys + keys), as: Child.self)
    try await part.reached(revision: 0)
    return try MirrorStore<Part<Child, ChildAction>>(part, isolation) { [encode] action in
      encode(embed(action))
    }
  }
}

extension ObservableState {
  /// The way to a field, which a scope must lead to.
  fileprivate static func keys(of property: PartialKeyPath<Self>) -> [PathKey] {
    guard let path = path(of: property) else {
      preconditionFailure("A scope leads through fields of structs, which \(property) does not.")
    }
    return path.keys
  }
}
