/// The result of a simulation.
public struct SimulationReport: Sendable {
  public var seed: UInt64
  public var steps: Int
  /// A hash of every event: one seed has one trace, in every process.
  public var trace: UInt64
  /// The number of events of each kind, by name, which shows that every path is exercised.
  public var counts: [String: Int]
}

/// A violation of an invariant.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  public var seed: UInt64
  public var step: Int
  public var message: String
  /// How to reproduce it, if that needs more than the seed.
  public var advice: String?

  public var description: String {
    let text = "seed \(seed), step \(step): \(message)"
    return advice.map { "\(text)\n\($0)" } ?? text
  }
}
