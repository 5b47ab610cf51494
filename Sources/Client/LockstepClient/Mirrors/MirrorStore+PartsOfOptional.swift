public import Lockstep
import Schemas
public import Values

// Stores of parts of a state that may be absent, such as those of a row. A part is absent while what it is a
// part of is.

extension MirrorStore where F.Action: CasePathable {
  /// A store of a part of an optional state; the part is absent while the state is.
  public func scope<
    Wrapped: ObservableState, Child: Synchronizable, ChildAction: SynchronizableAction
  >(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Child> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child?, ChildAction>> where F.State == Wrapped? {
    try await part(
      Wrapped.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path])
  }

  /// The same for a part that may be absent by itself.
  public func scope<
    Wrapped: ObservableState, Child: Synchronizable, ChildAction: SynchronizableAction
  >(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Child?> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child?, ChildAction>> where F.State == Wrapped? {
    try await part(
      Wrapped.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path])
  }

  /// The same for one entry of a map, or one row of an array of identified elements.
  public func scope<
    Wrapped: ObservableState, Children: KeyedChildren, ChildAction: SynchronizableAction
  >(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, ChildAction)>
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State == Wrapped? {
    try await part(
      Wrapped.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].row(id))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<
    Wrapped: ObservableState, Children: KeyedChildren, ChildAction: SynchronizableAction
  >(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: ChildAction)>
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State == Wrapped? {
    try await part(
      Wrapped.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].unlabelled().row(id))
  }

  // MARK: In which actions show at once

  /// A store of a part of an optional state, as the other `scope` with `optimistic`.
  ///
  ///     let card = try await board.scope(state: \.cards, id: 7, action: \.card, optimistic: Card())
  ///     let list = try await card.scope(state: \.list, action: \.list, optimistic: CheckList())
  public func scope<Wrapped: ObservableState, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Child.State> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>> where F.State == Wrapped? {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Wrapped.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path],
      optimistic: OptionalPart(child))
  }

  /// The same for a part that may be absent by itself.
  public func scope<Wrapped: ObservableState, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Child.State?> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>> where F.State == Wrapped? {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Wrapped.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path],
      optimistic: OptionalPart(child))
  }

  /// The same for one entry of a map, or one row of an array of identified elements.
  public func scope<Wrapped: ObservableState, Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, Child.Action)>, optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>>
  where F.State == Wrapped?, Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Wrapped.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].row(id), optimistic: OptionalPart(child))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<Wrapped: ObservableState, Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<Wrapped, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: Child.Action)>,
    optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>>
  where F.State == Wrapped?, Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Wrapped.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].unlabelled().row(id),
      optimistic: OptionalPart(child))
  }
}
