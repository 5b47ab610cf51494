import ClientCore
public import Lockstep
import LockstepStore
import Schemas
import Values
public import Wire

// An optimistic action shows before the daemon has answered. The store reduces it on a copy of the
// confirmed state, with the daemon's own reducer, and shows the result. When the daemon's changes
// come, the confirmed state moves on, and the actions that are not in it yet are reduced again on top.
// So what shows is always a state that the daemon had, or such a state and the waiting actions.

/// Sends an action so that it shows at once.
public struct Optimism: Sendable {
  let mark: Mark

  /// Show the action at once, and acknowledge it when it is in the daemon's state.
  public static let optimistic = Optimism(mark: .applied)

  /// Show the action at once, and acknowledge it by this mark.
  public static func optimistic(_ mark: Mark) -> Optimism { Optimism(mark: mark) }
}

extension MirrorStore where F: Reducer {
  /// Connect to a daemon, and return when its state has arrived. Actions that are sent `.optimistic`
  /// are reduced here by the feature, too, with the dependencies that a `Store` would take here, unless
  /// `change` says otherwise. Its effects run in the daemon only.
  ///
  ///     let mirror = try await MirrorStore.connect(optimistic: Todos())
  ///     mirror.post(.toggle(id), .optimistic)
  ///     print(mirror.todos[id]?.isDone)  // Changed already.
  ///
  /// Where the daemon decides differently (it rejects the action, or its clock, its policy or another
  /// action came before), its state replaces what showed. Throws as `connect`.
  public static func connect(
    isolation: isolated (any Actor)? = #isolation, optimistic feature: F,
    _ options: Connection.Options = Connection.Options(),
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) async throws -> MirrorStore {
    var options = options
    options.schemaUse = .expected(F.schema)
    options.wantsDecisions = true
    let subscription = try await Subscription<F.State>.connect(options)
    return try showing(
      subscription, isolation, ActionCoding(), by: feature, label: options.label,
      .here(change))
  }

  /// A store of a subscription that shows its connection's optimistic actions by a reducer.
  static func showing(
    _ subscription: Subscription<F.State>, _ isolation: (any Actor)?,
    _ actions: ActionCoding<F.Action>, by feature: F, label: String,
    _ dependencies: DependencyValues
  ) throws -> MirrorStore {
    subscription.link.perform { [number = subscription.number] state in
      state.session.showOptimistically(number)
    }
    let predictor = Predictor(
      Prediction(of: feature, dependencies: dependencies), actions, label: label)
    return try MirrorStore(subscription, isolation, actions, predictor: predictor)
  }

  /// The daemon's state as far as it was received, without the actions that wait.
  public var confirmed: F.State { confirmedState }

  /// The optimistic actions that show and that the daemon's state does not contain yet, oldest first.
  /// O(actions).
  public var pending: [F.Action] {
    (predictor as? Predictor<F>)?.pending(in: subscription) ?? []
  }

  /// Send an action that shows at once, and return when the daemon's state contains it. Throws
  /// `ClientError.rejected` when it was rejected, `.outcomeUnknown` when its outcome cannot be known:
  /// what showed is then gone.
  ///
  /// Only for a store that was made with `optimistic`. While the daemon is older than
  /// version 3 of the protocol, nothing shows before it has answered.
  @discardableResult
  public func send(_ action: F.Action, _ optimism: Optimism) async throws -> Acknowledgement {
    checkOptimism()
    return try await connection.send(
      payload: actions.encode(action), optimism.mark, isOptimistic: true)
  }

  /// Send an action that shows at once, without waiting, as the other `send` with an `Optimism`.
  /// `failedPosts` tells if it is not done.
  public func post(_ action: F.Action, _ optimism: Optimism) {
    checkOptimism()
    connection.post(payload: actions.encode(action), optimism.mark, isOptimistic: true)
  }

  private func checkOptimism() {
    precondition(
      predictor != nil,
      "Only a store that was made with `optimistic` shows actions before their answer.")
  }
}

extension DependencyValues {
  /// Those that a `Store` would take here, but for what is changed.
  static func here(_ change: (inout DependencyValues) -> Void) -> DependencyValues {
    var values = current.over(.ofLiveStore)
    change(&values)
    return values
  }
}
