public import Values

// Theory of operation
//
// What happens to a store is told to its features by actions, which the store's owner reduces as its
// own: `Lifecycle` says which. A feature writes its own part, `Reducer.lifecycle`; the library adds
// the parts of the reducers of which it is made, in one place, `Reducer.composedLifecycle`.
//
// A feature may contain itself: a row that has rows. So a child's life cycle is made only when it is
// asked for, with the state of a child that is there, and a state ends. Whether a feature wants to be
// told at all is asked without a state; that question ends where a type of child contains itself. So
// does the way through children that are always there, on which a feature may meet itself for ever.

/// How a daemon came to life.
public enum Start: Hashable, Sendable {
  /// Its history begins.
  case first
  /// It was stopped in order, and goes on.
  case restarted
  /// It goes on after a crash.
  case crashed
}

/// What happens to a store, of which its features can be told.
public enum LifecycleEvent: Hashable, Sendable {
  /// The store, or its daemon, has started: the first that its features are told.
  case started(Start)
  /// Something became of a client's session.
  case session(SessionEvent)

  /// The kind of event that a feature has a hook for, or has not.
  fileprivate var kind: LifecycleKind {
    switch self {
    case .started: .start
    case .session: .session
    }
  }
}

/// A kind of `LifecycleEvent`.
private enum LifecycleKind { case start, session }

/// Which actions tell a feature that its store has started, or what became of a client's session.
///
///     var lifecycle: Lifecycle<State, Action> {
///       .onStart { start in .began }
///         .onSession { event, state in state.isOpen ? [.session(event)] : [] }
///     }
///
/// The actions are reduced as the store's own, children's before their parent's.
public struct Lifecycle<State: Synchronizable, Action: SynchronizableAction>: Sendable {
  /// The types of the children on the way to the one that is asked.
  fileprivate typealias Enclosing = Set<ObjectIdentifier>
  fileprivate typealias Initial = @Sendable (State?, Enclosing) -> State?

  fileprivate let has: @Sendable (LifecycleKind, Enclosing) -> Bool
  fileprivate let append: @Sendable (LifecycleEvent, State, Enclosing, inout [Action]) -> Void
  /// Nil where nothing says with which state to begin.
  fileprivate let initial: Initial?

  /// The actions that tell of an event, in the order in which the store's owner must reduce them:
  /// children before their parent.
  public func actions(for event: LifecycleEvent, in state: State) -> [Action] {
    guard has(event.kind, []) else { return [] }
    var actions: [Action] = []
    append(event, state, [], &actions)
    return actions
  }

  /// Whether any of the features has `onSession`. Inside of a child, another of its type is not
  /// asked: it is told if the outer one is.
  public var watchesSessions: Bool { has(.session, []) }

  /// The state with which a history begins, if no other is given: that of reactors, and for the
  /// rest the one given here. Nil when there is neither.
  public func initialState(_ defaults: State?) -> State? {
    guard let initial else { return defaults }
    return initial(defaults, [])
  }
}

// MARK: A feature's own

extension Lifecycle {
  /// Nothing is told.
  public static var none: Lifecycle {
    Lifecycle(has: { _, _ in false }, append: { _, _, _, _ in }, initial: nil)
  }

  /// The action that tells the feature that its store, or its daemon, has started. Those of all
  /// features are reduced before any other action. A child that comes and goes (`forEach`, `ifLet`,
  /// `ifCaseLet`) is told if it is there at the start; one that comes later begins by an action of
  /// its parent.
  public static func onStart(_ action: @escaping @Sendable (Start) -> Action?) -> Lifecycle {
    Lifecycle(
      has: { kind, _ in kind == .start },
      append: { event, _, _, actions in
        if case .started(let start) = event, let action = action(start) { actions.append(action) }
      }, initial: nil)
  }

  /// The actions that tell the feature what became of a client's session. A daemon watches the
  /// processes of its clients if any of its features has this.
  public static func onSession(
    _ actions: @escaping @Sendable (SessionEvent, State) -> [Action]
  ) -> Lifecycle {
    Lifecycle(
      has: { kind, _ in kind == .session },
      append: { event, state, _, all in
        if case .session(let event) = event { all += actions(event, state) }
      }, initial: nil)
  }

  /// This, and behind it what `onStart` says.
  public func onStart(_ action: @escaping @Sendable (Start) -> Action?) -> Lifecycle {
    .merge(self, .onStart(action))
  }

  /// This, and behind it what `onSession` says.
  public func onSession(
    _ actions: @escaping @Sendable (SessionEvent, State) -> [Action]
  ) -> Lifecycle {
    .merge(self, .onSession(actions))
  }

  /// That of a reducer which the feature runs in its own `reduce`. What is in a `body` need not be
  /// named.
  public static func of<R: Reducer<State, Action>>(_ reducer: R) -> Lifecycle {
    reducer.composedLifecycle
  }

  /// That of several reducers of one state, in this order.
  public static func merge(_ parts: Lifecycle...) -> Lifecycle { merge(parts) }

  public static func merge(_ parts: [Lifecycle]) -> Lifecycle {
    Lifecycle(
      has: { kind, enclosing in parts.contains { $0.has(kind, enclosing) } },
      append: { event, state, enclosing, actions in
        for part in parts { part.append(event, state, enclosing, &actions) }
      },
      initial: merge(parts.compactMap(\.initial)))
  }

  private static func merge(_ initials: [Initial]) -> Initial? {
    if initials.isEmpty { return nil }
    return { defaults, enclosing in
      var state = defaults
      for initial in initials { state = initial(state, enclosing) }
      return state
    }
  }

  /// The same, of a history that begins with a state of its own.
  func beginning(with state: @escaping @Sendable () -> State) -> Lifecycle {
    Lifecycle(has: has, append: append, initial: { _, _ in state() })
  }
}

// MARK: Of children

extension Lifecycle {
  /// That of a child that is always there.
  public static func part<Child: Reducer>(
    _ child: Child, at property: any WritableKeyPath<State, Child.State> & Sendable,
    _ embed: @escaping @Sendable (Child.Action) -> Action
  ) -> Lifecycle {
    Lifecycle(
      has: { kind, enclosing in
        guard let inside = Self.inside(child, enclosing) else { return false }
        return child.composedLifecycle.has(kind, inside)
      },
      append: { event, state, enclosing, actions in
        guard let inside = Self.inside(child, enclosing) else { return }
        var own: [Child.Action] = []
        child.composedLifecycle.append(event, state[keyPath: property], inside, &own)
        actions += own.map(embed)
      },
      initial: { defaults, enclosing in
        guard var state = defaults, let inside = Self.inside(child, enclosing),
          let initial = child.composedLifecycle.initial,
          let part = initial(state[keyPath: property], inside)
        else { return defaults }
        state[keyPath: property] = part
        return state
      })
  }

  /// That of children that come and go: those are told that `forEachChild` finds in a state.
  public static func children<Child: Reducer>(
    _ child: Child,
    _ forEachChild:
      @escaping @Sendable (
        State, _ tell: (Child.State, _ embed: (Child.Action) -> Action) -> Void
      ) -> Void
  ) -> Lifecycle {
    Lifecycle(
      has: { kind, enclosing in
        guard let inside = Self.inside(child, enclosing) else { return false }
        return child.composedLifecycle.has(kind, inside)
      },
      append: { event, state, _, actions in
        let lifecycle = child.composedLifecycle
        guard lifecycle.has(event.kind, []) else { return }
        forEachChild(state) { state, embed in
          var own: [Child.Action] = []
          lifecycle.append(event, state, [], &own)
          actions += own.map(embed)
        }
      },
      initial: nil)
  }

  /// The children on the way into a child; nil when it is inside of one of its kind.
  private static func inside<Child: Reducer>(
    _ child: Child, _ enclosing: Enclosing
  ) -> Enclosing? {
    let type = ObjectIdentifier(Child.self)
    return enclosing.contains(type) ? nil : enclosing.union([type])
  }
}
