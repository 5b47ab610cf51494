public import CoreMetrics
import DaemonCore
import Synchronization

/// Stores the values of swift-metrics, and writes them in the text format of OpenMetrics 1.0.
///
/// Counters are counters; gauges and recorders show their last value; timers and aggregating
/// recorders are summaries of count and sum.
public final class MetricsRegistry: MetricsFactory {
  /// The registry of the process's daemon.
  public static let shared = MetricsRegistry()

  fileprivate struct Series {
    var value = 0.0
    var count: UInt64 = 0
  }

  fileprivate struct Family {
    let kind: OpenMetrics.Kind
    var series: [String: Series] = [:]
  }

  fileprivate let families = Mutex<[String: Family]>([:])

  public init() {}

  public func makeCounter(
    label: String, dimensions: [(String, String)]
  ) -> any CounterHandler {
    Handler(self, label, dimensions, .counter)
  }

  public func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    Handler(self, label, dimensions, .counter)
  }

  public func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    Handler(self, label, dimensions, aggregate ? .summary : .gauge)
  }

  public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    Handler(self, label, dimensions, .gauge)
  }

  public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    Handler(self, label, dimensions, .summary)
  }

  public func destroyCounter(_ handler: any CounterHandler) {}
  public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
  public func destroyRecorder(_ handler: any RecorderHandler) {}
  public func destroyMeter(_ handler: any MeterHandler) {}
  public func destroyTimer(_ handler: any TimerHandler) {}

  /// All metrics as text, without the final `# EOF`.
  public var openMetrics: String {
    families.withLock { families in
      families.keys.sorted().map { name in
        families[name].map { Self.text(of: $0, name) } ?? ""
      }.joined()
    }
  }

  private static func text(of family: Family, _ name: String) -> String {
    var text = OpenMetrics.heading(name, family.kind)
    for labels in family.series.keys.sorted() {
      guard let series = family.series[labels] else { continue }
      text += OpenMetrics.series(
        name, family.kind, labels: labels, value: number(series.value), count: series.count)
    }
    return text
  }

  private static func number(_ value: Double) -> String {
    Int64(exactly: value).map { "\($0)" } ?? "\(value)"
  }
}

/// One series of a registry.
private final class Handler: CounterHandler, FloatingPointCounterHandler, RecorderHandler,
  MeterHandler, TimerHandler
{
  private let registry: MetricsRegistry
  private let name: String
  private let labels: String
  private let kind: OpenMetrics.Kind

  init(
    _ registry: MetricsRegistry, _ label: String, _ dimensions: [(String, String)],
    _ kind: OpenMetrics.Kind
  ) {
    self.registry = registry
    self.kind = kind
    name = OpenMetrics.name(label)
    labels = OpenMetrics.labels(dimensions)
    let (name, labels) = (name, labels)
    registry.families.withLock { families in
      var family = families[name] ?? .init(kind: kind)
      if family.series[labels] == nil { family.series[labels] = .init() }
      families[name] = family
    }
  }

  private func change(_ body: (inout MetricsRegistry.Series) -> Void) {
    registry.families.withLock { families in
      body(&families[name, default: .init(kind: kind)].series[labels, default: .init()])
    }
  }

  func increment(by amount: Int64) { change { $0.value += Double(amount) } }
  func increment(by amount: Double) { change { $0.value += amount } }
  func decrement(by amount: Double) { change { $0.value -= amount } }
  func set(_ value: Int64) { change { $0.value = Double(value) } }
  func set(_ value: Double) { change { $0.value = value } }
  func reset() { change { $0 = .init() } }

  func record(_ value: Int64) { record(Double(value)) }

  func record(_ value: Double) {
    if kind == .gauge { return set(value) }
    change { series in
      series.value += value
      series.count += 1
    }
  }

  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}
