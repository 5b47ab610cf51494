public import Values

/// Reduces actions where there is no authority: to show what a store will probably make of them.
///
/// The reducer gets what it would get in the store: the cause of the action, the dependencies, a
/// time, and random numbers. Its effects do not start, and middleware is not asked. So a prediction
/// may be wrong, and the store's state replaces it.
public struct Prediction<R: Reducer>: Sendable {
  public let reducer: R
  /// The dependencies of the reducer.
  public let dependencies: DependencyValues

  public init(of reducer: R, dependencies: DependencyValues) {
    self.reducer = reducer
    self.dependencies = dependencies
  }

  /// Reduce an action, and return whether the reducer accepts it; if not, the state stays as it is.
  /// `number` distinguishes the actions of a sender: equal numbers draw equal random numbers. Costs
  /// what the reduction costs, and a copy of the paths that it writes.
  @discardableResult
  public func reduce(
    _ action: R.Action, into state: inout R.State, from cause: Cause, number: UInt64,
    seed: HashSeed
  ) -> Bool {
    let old: R.State? = R.State.isJournaled ? nil : state
    do throws(Rejection) {
      _ =
        R.usesContext
        ? try reduceInContext(action, &state, cause, Hashing.mix(seed.rawValue &+ number))
        : try reducer.reduce(into: &state, action: action)
    } catch {
      state.rollBack(to: old)
      return false
    }
    // Ends the transaction: nothing settles here, so notes of changes would accumulate.
    state.adopt(seed: seed)
    return true
  }

  private func reduceInContext(
    _ action: R.Action, _ state: inout R.State, _ cause: Cause, _ seed: UInt64
  ) throws(Rejection) -> Effect<R.Action> {
    var values = dependencies
    values.reduction = ReductionContext(
      cause: cause, time: dependencies.date.now, seed: seed, children: [:])
    return try values.run { () throws(Rejection) in
      try reducer.reduce(into: &state, action: action)
    }
  }
}
