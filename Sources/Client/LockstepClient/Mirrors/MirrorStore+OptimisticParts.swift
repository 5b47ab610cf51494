public import Lockstep
import Schemas
import Values

// A part has a reducer of its own in the feature that it is a part of, so the actions that concern it can
// show at once without the rest of the state: reduced by that reducer alone, on that part alone.

extension MirrorStore where F.Action: CasePathable, F.State: ObservableState {
  /// Connect to a daemon for a part of its state, in which actions that are sent `.optimistic` show at
  /// once: they are reduced here by the part's reducer, too. Nothing else of the state is received.
  ///
  ///     let fan = try await MirrorStore<Plant>.connect(
  ///       to: \.climate.fan, action: \.climate.fan, optimistic: Fan())
  ///     fan.post(.start, .optimistic)
  ///
  /// What the features around the part make of its actions shows when the daemon's changes come, as where
  /// it decides differently. Otherwise as the other `connect(optimistic:)` and `connect(to:action:)`.
  public static func connect<Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Child.State> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child,
    _ options: Connection.Options = Connection.Options(),
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) async throws -> MirrorStore<Child> {
    try await MirrorStore<Child>.connect(
      to: keys(of: property), of: F.self, isolation, options, F.Action.allCasePaths[keyPath: path],
      optimistic: child, .here(change))
  }

  /// The same for a part that may be absent.
  public static func connect<Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Child.State?> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child,
    _ options: Connection.Options = Connection.Options(),
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) async throws -> MirrorStore<OptionalPart<Child>> {
    try await MirrorStore<OptionalPart<Child>>.connect(
      to: keys(of: property), of: F.self, isolation, options, F.Action.allCasePaths[keyPath: path],
      optimistic: OptionalPart(child), .here(change))
  }

  /// The same for one entry of a map, or one row of an array of identified elements.
  public static func connect<Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, Child.Action)>, optimistic child: Child,
    _ options: Connection.Options = Connection.Options(),
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) async throws -> MirrorStore<OptionalPart<Child>> where Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.connect(
      to: keys(of: property) + Children.path(to: id), of: F.self, isolation, options,
      F.Action.allCasePaths[keyPath: path].row(id), optimistic: OptionalPart(child),
      .here(change))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public static func connect<Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    to property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: Child.Action)>,
    optimistic child: Child, _ options: Connection.Options = Connection.Options(),
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) async throws -> MirrorStore<OptionalPart<Child>> where Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.connect(
      to: keys(of: property) + Children.path(to: id), of: F.self, isolation, options,
      F.Action.allCasePaths[keyPath: path].unlabelled().row(id),
      optimistic: OptionalPart(child), .here(change))
  }

  /// A store of a part of the state, as the other `scope`, in which actions that are sent `.optimistic`
  /// show at once, reduced by the part's reducer with the dependencies of this store. Only for a store that
  /// was made with `optimistic`.
  ///
  /// The part's actions show in it and in this store, each time by the store's own reducer, whichever of
  /// them sends. Others show in the part when the daemon's changes come. Each store of a connection
  /// decodes all of its waiting actions again when one is decided.
  ///
  ///     let card = try await board.scope(state: \.cards, id: 7, action: \.card, optimistic: Card())
  ///     card.post(.rename("Fan"), .optimistic)
  public func scope<Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Child.State> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child
  ) async throws -> MirrorStore<Child> {
    try await MirrorStore<Child>.part(
      of: self, at: Self.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path],
      optimistic: child)
  }

  /// The same for a part that may be absent.
  public func scope<Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Child.State?> & Sendable,
    action path: CaseKeyPath<F.Action, Child.Action>, optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>> {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Self.keys(of: property), isolation, F.Action.allCasePaths[keyPath: path],
      optimistic: OptionalPart(child))
  }

  /// The same for one entry of a map, or one row of an array of identified elements.
  public func scope<Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (Children.ChildID, Child.Action)>, optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>> where Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Self.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].row(id), optimistic: OptionalPart(child))
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<Children: KeyedChildren, Child: Reducer>(
    isolation: isolated (any Actor)? = #isolation,
    state property: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<F.Action, (id: Children.ChildID, action: Child.Action)>,
    optimistic child: Child
  ) async throws -> MirrorStore<OptionalPart<Child>> where Children.ChildState == Child.State {
    try await MirrorStore<OptionalPart<Child>>.part(
      of: self, at: Self.keys(of: property) + Children.path(to: id), isolation,
      F.Action.allCasePaths[keyPath: path].unlabelled().row(id),
      optimistic: OptionalPart(child))
  }
}

extension MirrorStore where F: Reducer {
  fileprivate static func connect<Root: Feature>(
    to keys: [PathKey], of root: Root.Type, _ isolation: (any Actor)?,
    _ options: Connection.Options, _ actions: CasePath<Root.Action, F.Action>,
    optimistic feature: F, _ dependencies: DependencyValues
  ) async throws -> MirrorStore {
    var options = options
    options.schemaUse = .expected(Root.schema)
    options.wantsDecisions = true
    return try showing(
      await Subscription<F.State>.connect(to: Path(keys), options), isolation,
      ActionCoding().part(actions), by: feature, label: options.label, dependencies)
  }

  static func part<Whole: Feature>(
    of whole: MirrorStore<Whole>, at keys: [PathKey], _ isolation: (any Actor)?,
    _ actions: CasePath<Whole.Action, F.Action>, optimistic feature: F
  ) async throws -> MirrorStore {
    guard let predictor = whole.predictor else {
      preconditionFailure("Only a store that was made with `optimistic` has such parts.")
    }
    let part = whole.connection.subscribe(
      to: Path(whole.subscription.path.keys + keys), as: F.State.self)
    try await part.reached(revision: 0)
    return try showing(
      part, isolation, whole.actions.part(actions), by: feature, label: predictor.label,
      predictor.dependencies)
  }
}
