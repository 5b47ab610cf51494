import CBOR
public import Lockstep
import Schemas
public import Values

/// The feature type of a part: its state and its actions, as in the result of `MirrorStore.scope`.
public enum Part<State: Synchronizable, Action: SynchronizableAction>: Feature {}

extension MirrorStore where F.Action: CasePathable {
  /// A store of a part of the state, and of the actions that concern it: a subscription of its own
  /// on the same connection. It receives changes of the part only. Returns when the part has
  /// arrived.
  ///
  /// The key path leads through fields of structs. An optional part may appear and disappear.
  public func scope<Child: Synchronizable, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Child> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child, ChildAction>> where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(Self.keys(of: property), isolation, actions)
  }

  /// A store of one entry of a map, or one row of an array, which may appear and disappear. The row
  /// stays the same when others are inserted, moved or removed.
  public func scope<Children: KeyedChildren, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, ChildAction)>
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(
      Self.keys(of: property) + Children.path(to: id), isolation, actions.row(id))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<Children: KeyedChildren, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: ChildAction)>
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await part(
      Self.keys(of: property) + Children.path(to: id), isolation, actions.unlabelled().row(id))
  }

  /// Connect to a daemon for a part of its state, and return when the part has arrived. Nothing else
  /// of the state is received, so the part can be shown whatever the rest holds.
  ///
  ///     let fan = try await MirrorStore<Plant>.connect(to: \.climate.fan, action: \.climate.fan)
  ///     try await fan.send(.start)
  ///
  /// The key path leads through fields of structs. Throws as `connect`, and `AbsentState` if the daemon
  /// has no value there and `Child` is not optional.
  public static func connect<Child: Synchronizable, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Child> & Sendable,
    action path: CaseKeyPath<F.Action, ChildAction>,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> MirrorStore<Part<Child, ChildAction>> where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await connect(to: keys(of: property), isolation, options, actions)
  }

  /// Connect to a daemon for one entry of a map, or one row of an array of identified elements, which
  /// may appear and disappear.
  public static func connect<Children: KeyedChildren, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, ChildAction)>,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await connect(
      to: keys(of: property) + Children.path(to: id), isolation, options, actions.row(id))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public static func connect<Children: KeyedChildren, ChildAction: SynchronizableAction>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: ChildAction)>,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> MirrorStore<Part<Children.ChildState?, ChildAction>>
  where F.State: ObservableState {
    let actions = F.Action.allCasePaths[keyPath: path]
    return try await connect(
      to: keys(of: property) + Children.path(to: id), isolation, options,
      actions.unlabelled().row(id))
  }

  private static func connect<Child: Synchronizable, ChildAction: SynchronizableAction>(
    to keys: [PathKey], _ isolation: (any Actor)?, _ options: Connection.Options,
    _ actions: CasePath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child, ChildAction>> {
    var options = options
    options.schemaUse = .expected(F.schema)
    let part = try await Subscription<Child>.connect(to: Path(keys), options)
    return try MirrorStore<Part<Child, ChildAction>>(
      part, isolation, ActionCoding().part(actions))
  }

  static func keys(of property: PartialKeyPath<F.State>) -> [PathKey]
  where F.State: ObservableState {
    F.State.keys(of: property)
  }

  func part<Child: Synchronizable, ChildAction: SynchronizableAction>(
    _ keys: [PathKey], _ isolation: (any Actor)?,
    _ actions: CasePath<F.Action, ChildAction>
  ) async throws -> MirrorStore<Part<Child, ChildAction>> {
    let part = connection.subscribe(to: Path(subscription.path.keys + keys), as: Child.self)
    try await part.reached(revision: 0)
    return try MirrorStore<Part<Child, ChildAction>>(
      part, isolation, self.actions.part(actions))
  }
}

extension ObservableState {
  /// The path of a field, which a scope must lead to.
  static func keys(of property: PartialKeyPath<Self>) -> [PathKey] {
    guard let path = path(of: property) else {
      preconditionFailure("A scope leads through fields of structs, which \(property) does not.")
    }
    return path.keys
  }
}
