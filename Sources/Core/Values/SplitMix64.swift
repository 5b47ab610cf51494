/// Steele, Lea and Flood's SplitMix64: for jitter and simulations, not for secrets.
public struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64
  public init(_ seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }
}
