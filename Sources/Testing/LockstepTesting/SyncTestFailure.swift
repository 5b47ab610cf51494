import Simulator

/// A violation of an invariant, found by a `SyncTestStore`.
public struct SyncTestFailure: Error, Sendable, CustomStringConvertible {
  public let seed: UInt64
  /// The number of steps before it.
  public let step: Int
  public let message: String
  /// The message, with the seed and the step, and how to reproduce it.
  public let description: String

  init(_ failure: SimulationFailure) {
    seed = failure.seed
    step = failure.step
    message = failure.message
    description = failure.description
  }
}
