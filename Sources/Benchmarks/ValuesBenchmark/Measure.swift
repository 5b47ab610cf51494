import Values

/// The nanoseconds of `body` for each of its operations.
@inline(never)
func nanoseconds(_ operations: Int, _ body: () -> Void) -> Double {
  let time = ContinuousClock().measure(body).components
  return (Double(time.seconds) * 1e9 + Double(time.attoseconds) * 1e-9) / Double(operations)
}

func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }

/// Keeps the compiler from removing `value` as unused.
@inline(never)
func consume<T>(_ value: T) {}

/// Random numbers that are equal in every run.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }
}

/// Measures of one subject that take turns, so that a slow machine slows all of them alike.
///
/// A turn is short, a quarter of a millisecond, so that the median ignores the turns in which
/// another process had the processor. Returns the median of each measure, in nanoseconds.
func interleaved<Subject>(
  _ subject: inout Subject, rounds: Int, _ measures: [(inout Subject) -> Double]
) -> [Double] {
  var times = [[Double]](repeating: [], count: measures.count)
  for _ in 0..<rounds {
    for (place, measure) in measures.enumerated() { times[place].append(measure(&subject)) }
  }
  return times.map(median)
}
