import Simulator

/// Something that must not happen happened around a `SyncTestStore`.
public struct SyncTestFailure: Error, Sendable, CustomStringConvertible {
  public let seed: UInt64
  /// How many things had happened before.
  public let step: Int
  public let message: String
  /// The message, with the seed and the step, and how to see it again.
  public let description: String

  init(_ failure: SimulationFailure) {
    seed = failure.seed
    step = failure.step
    message = failure.message
    description = failure.description
  }
}
