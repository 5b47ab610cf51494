public import Values

/// What an optimistic mirror shows: a confirmed value with the actions that wait reduced on it.
///
/// A further action is reduced alone, on what showed last: the caller keeps that.
public struct PredictedState<State: Synchronizable>: Sendable {
  /// The version of the view that this shows.
  public let version: UInt64
  /// The confirmed value with the actions.
  public private(set) var state: State

  /// The number of actions that are reduced.
  private let count: Int
  private let lineage: OptimisticView.Lineage
  #if FAULTS
    package var ignoresLineage = false
  #else
    /// False: a release has no code for this fault.
    private var ignoresLineage: Bool { false }
  #endif

  /// Reduce the actions of a view, but for those that are reduced in `former`, if that has the same
  /// confirmed value and is older. Nil if the value is absent, or of another type. `reduce` changes a
  /// state by an action in its encoded form. Costs what that does, for each action that is reduced.
  public init?(
    _ view: OptimisticView, after former: PredictedState?,
    reduce: (_ id: ActionID, _ payload: [UInt8], _ state: inout State) -> Void
  ) {
    guard let confirmed = view.confirmed.value(as: State.self) else { return nil }
    var (known, state) = (0, confirmed)
    if let former, former.ignoresLineage || former.lineage == view.lineage,
      former.version < view.version
    {
      (known, state) = (former.count, former.state)
    }
    for (id, payload) in view.actions.dropFirst(known) { reduce(id, payload, &state) }
    (version, lineage, count) = (view.version, view.lineage, view.actions.count)
    self.state = state
  }
}
