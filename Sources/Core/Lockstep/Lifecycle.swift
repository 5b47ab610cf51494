public import Values

// Theory of operation
//
// A store notifies its features of events by actions, which the store's owner reduces as its own.
// `Lifecycle` maps an event to these actions. A feature implements its own part,
// `Reducer.lifecycle`; the library adds the parts of the reducers that it is composed of, in one
// place, `Reducer.composedLifecycle`.
//
// A feature may contain itself: a row that has rows. So a child's life cycle is made lazily, for
// the state of an existing child, and that recursion ends because a state is finite. Whether a
// feature has a hook (`has`) is asked without a state, so that recursion stops at a child type that
// contains itself. Recursion through children that always exist (`part`) stops there, too: it could
// otherwise be infinite.

/// How a daemon started.
public enum Start: Hashable, Sendable {
  /// Its history begins.
  case first
  /// It continues after an orderly stop.
  case restarted
  /// It continues after a crash.
  case crashed
}

/// An event in the life of a store, of which its features can be notified.
public enum LifecycleEvent: Hashable, Sendable {
  /// The store, or its daemon, has started: the first event that its features receive.
  case started(Start)
  /// A client's session was lost, was resumed or has ended.
  case session(SessionEvent)

  /// The kind of hook that handles the event.
  fileprivate var kind: LifecycleKind {
    switch self {
    case .started: .start
    case .session: .session
    }
  }
}

/// A kind of `LifecycleEvent`.
private enum LifecycleKind { case start, session }

/// The actions that notify a feature of the start of its store and of session events.
///
///     var lifecycle: Lifecycle<State, Action> {
///       .onStart { start in .began }
///         .onSession { event, state in state.isOpen ? [.session(event)] : [] }
///     }
///
/// The store's owner reduces the actions as its own, children's before their parent's.
public struct Lifecycle<State: Synchronizable, Action: SynchronizableAction>: Sendable {
  /// The types of the reducers that enclose the one that is asked.
  fileprivate typealias Enclosing = Set<ObjectIdentifier>
  fileprivate typealias Initial = @Sendable (State?, Enclosing) -> State?

  fileprivate let has: @Sendable (LifecycleKind, Enclosing) -> Bool
  fileprivate let append: @Sendable (LifecycleEvent, State, Enclosing, inout [Action]) -> Void
  /// Nil when no reducer gives an initial state.
  fileprivate let initial: Initial?

  /// The actions for an event, in the order in which the store's owner must reduce them: children
  /// before their parent.
  public func actions(for event: LifecycleEvent, in state: State) -> [Action] {
    guard has(event.kind, []) else { return [] }
    var actions: [Action] = []
    append(event, state, [], &actions)
    return actions
  }

  /// Whether any of the features has an `onSession` hook. A child nested in another of its type is
  /// not asked: it is notified if the outer one is.
  public var watchesSessions: Bool { has(.session, []) }

  /// The initial state of a new history, unless the owner gives another: the states of reactors,
  /// and `defaults` for the rest. Nil when there is neither.
  public func initialState(_ defaults: State?) -> State? {
    guard let initial else { return defaults }
    return initial(defaults, [])
  }
}

// MARK: A feature's own

extension Lifecycle {
  /// No actions for any event.
  public static var none: Lifecycle {
    Lifecycle(has: { _, _ in false }, append: { _, _, _, _ in }, initial: nil)
  }

  /// The action that notifies the feature of the start of its store, or its daemon. The start
  /// actions of all features are reduced before any other action. An optional child (`forEach`,
  /// `ifLet`, `ifCaseLet`) is notified if it exists at the start; one that is created later is
  /// started by an action of its parent.
  public static func onStart(_ action: @escaping @Sendable (Start) -> Action?) -> Lifecycle {
    Lifecycle(
      has: { kind, _ in kind == .start },
      append: { event, _, _, actions in
        if case .started(let start) = event, let action = action(start) { actions.append(action) }
      }, initial: nil)
  }

  /// An action at the start of the store, or the daemon, if the state then needs one.
  static func onStartByState(_ action: @escaping @Sendable (State) -> Action?) -> Lifecycle {
    Lifecycle(
      has: { kind, _ in kind == .start },
      append: { event, state, _, actions in
        if case .started = event, let action = action(state) { actions.append(action) }
      }, initial: nil)
  }

  /// The actions that notify the feature of session events. A daemon watches the processes of its
  /// clients if any of its features has this hook.
  public static func onSession(
    _ actions: @escaping @Sendable (SessionEvent, State) -> [Action]
  ) -> Lifecycle {
    Lifecycle(
      has: { kind, _ in kind == .session },
      append: { event, state, _, all in
        if case .session(let event) = event { all += actions(event, state) }
      }, initial: nil)
  }

  /// This life cycle, followed by `onStart`.
  public func onStart(_ action: @escaping @Sendable (Start) -> Action?) -> Lifecycle {
    .merge(self, .onStart(action))
  }

  /// This life cycle, followed by `onSession`.
  public func onSession(
    _ actions: @escaping @Sendable (SessionEvent, State) -> [Action]
  ) -> Lifecycle {
    .merge(self, .onSession(actions))
  }

  /// The life cycle of a reducer that the feature calls in its own `reduce`. The reducers in a
  /// `body` are included without this.
  public static func of<R: Reducer<State, Action>>(_ reducer: R) -> Lifecycle {
    reducer.composedLifecycle
  }

  /// The life cycles of several reducers of one state, in this order.
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

  /// The same life cycle with an initial state of its own for a new history.
  func beginning(with state: @escaping @Sendable () -> State) -> Lifecycle {
    Lifecycle(has: has, append: append, initial: { _, _ in state() })
  }
}

// MARK: Of children

extension Lifecycle {
  /// The life cycle of a child that always exists.
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

  /// The life cycle of optional children: those that `forEachChild` finds in a state are notified.
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

  /// The enclosing types inside a child; nil when the child is nested in another of its type.
  private static func inside<Child: Reducer>(
    _ child: Child, _ enclosing: Enclosing
  ) -> Enclosing? {
    let type = ObjectIdentifier(Child.self)
    return enclosing.contains(type) ? nil : enclosing.union([type])
  }
}
