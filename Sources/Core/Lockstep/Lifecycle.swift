public import Values

// Theory of operation
//
// What happens to a store is told to its features by actions, which the store's owner reduces as its
// own: `Lifecycle` says which. A feature's own part follows from its hooks (`action(for:)`); a reducer
// that runs others composes theirs, in one place, `Reducer.lifecycle`.
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
}

/// What a feature can want to be told of.
enum LifecycleInterest: Hashable {
  case start(Start)
  case sessions

  init(_ event: LifecycleEvent) {
    switch event {
    case .started(let start): self = .start(start)
    case .session: self = .sessions
    }
  }
}

/// How a reducer, with those of which it is made, follows the life of its store: which actions tell
/// it of an event, and with which state a history begins.
///
/// A reducer with a `body` has that of its parts. One whose `reduce` runs another reducer's forwards
/// the other's:
///
///     var lifecycle: Lifecycle<State, Action> { base.lifecycle }
public struct Lifecycle<State: Synchronizable, Action: SynchronizableAction>: Sendable {
  /// The types of the children on the way to the one that is asked.
  typealias Enclosing = Set<ObjectIdentifier>
  typealias Initial = @Sendable (State?, Enclosing) -> State?

  let wants: @Sendable (LifecycleInterest, Enclosing) -> Bool
  let append: @Sendable (LifecycleEvent, State, Enclosing, inout [Action]) -> Void
  /// Nil where nothing says with which state to begin.
  let initial: Initial?

  /// The actions that tell of an event, in the order in which the store's owner must reduce them:
  /// children before their parent.
  public func actions(for event: LifecycleEvent, in state: State) -> [Action] {
    guard wants(LifecycleInterest(event), []) else { return [] }
    var actions: [Action] = []
    append(event, state, [], &actions)
    return actions
  }

  /// Whether any of the features wants to be told of sessions. Inside of a child, another of its
  /// type is not asked: it is told if the outer one is.
  public var watchesSessions: Bool { wants(.sessions, []) }

  /// The state with which a history begins, if no other is given: that of reactors, and for the
  /// rest the one given here. Nil when there is neither.
  public func initialState(_ defaults: State?) -> State? {
    guard let initial else { return defaults }
    return initial(defaults, [])
  }
}

// MARK: Making one

extension Lifecycle {
  /// The part of one feature, without those of which it is made.
  init<R: Reducer<State, Action>>(of feature: R) {
    wants = { interest, _ in
      switch interest {
      case .start(let start): feature.action(for: start) != nil
      case .sessions: feature.watchesSessions
      }
    }
    append = { event, state, _, actions in
      switch event {
      case .started(let start):
        if let action = feature.action(for: start) { actions.append(action) }
      case .session(let news): actions += feature.actions(for: news, in: state)
      }
    }
    initial = nil
  }

  /// Nothing is told.
  public static var none: Lifecycle {
    Lifecycle(wants: { _, _ in false }, append: { _, _, _, _ in }, initial: nil)
  }

  /// That of several reducers of one state, in this order.
  public static func merge(_ parts: Lifecycle...) -> Lifecycle { merge(parts) }

  public static func merge(_ parts: [Lifecycle]) -> Lifecycle {
    Lifecycle(
      wants: { interest, enclosing in parts.contains { $0.wants(interest, enclosing) } },
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
    Lifecycle(wants: wants, append: append, initial: { _, _ in state() })
  }

  /// That of a child that is always there.
  public static func part<Child: Reducer>(
    _ child: Child, at property: any WritableKeyPath<State, Child.State> & Sendable,
    _ embed: @escaping @Sendable (Child.Action) -> Action
  ) -> Lifecycle {
    Lifecycle(
      wants: { interest, enclosing in
        guard let inside = Self.inside(child, enclosing) else { return false }
        return child.lifecycle.wants(interest, inside)
      },
      append: { event, state, enclosing, actions in
        guard let inside = Self.inside(child, enclosing) else { return }
        var own: [Child.Action] = []
        child.lifecycle.append(event, state[keyPath: property], inside, &own)
        actions += own.map(embed)
      },
      initial: { defaults, enclosing in
        guard var state = defaults, let inside = Self.inside(child, enclosing),
          let initial = child.lifecycle.initial,
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
      wants: { interest, enclosing in
        guard let inside = Self.inside(child, enclosing) else { return false }
        return child.lifecycle.wants(interest, inside)
      },
      append: { event, state, _, actions in
        let lifecycle = child.lifecycle
        guard lifecycle.wants(LifecycleInterest(event), []) else { return }
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
