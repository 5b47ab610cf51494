/// What a simulation came to.
public struct SimulationReport: Sendable {
  public var seed: UInt64
  public var steps: Int
  /// A hash of everything that happened: one seed has one trace, in every process.
  public var trace: UInt64
  /// How often what happened, by name: to see that every path is walked.
  public var counts: [String: Int]
}

/// Something that must not happen happened.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  public var seed: UInt64
  public var step: Int
  public var message: String
  /// How to see it again, where that needs more than the seed.
  public var advice: String?

  public var description: String {
    let text = "seed \(seed), step \(step): \(message)"
    return advice.map { "\(text)\n\($0)" } ?? text
  }
}
