/// Measured durations.
struct Latencies {
  private var times: [Duration] = []

  mutating func add(_ time: Duration) { times.append(time) }

  /// The time that this fraction of the measurements does not exceed.
  func quantile(_ part: Double) -> Duration {
    let sorted = times.sorted()
    if sorted.isEmpty { return .zero }
    return sorted[min(sorted.count - 1, Int((part * Double(sorted.count)).rounded(.up)) - 1)]
  }

  var summary: String {
    "p50 \(quantile(0.5).formatted), p99 \(quantile(0.99).formatted), "
      + "most \(quantile(1).formatted), of \(times.count)"
  }
}

extension Double {
  func rounded(to unit: Double) -> Double { (self / unit).rounded() / (1 / unit).rounded() }
}
