public import CoreMetrics
public import Lockstep
import Synchronization
public import Values

/// Counts actions by name and outcome with swift-metrics.
public struct MetricsMiddleware<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  private struct Key: Hashable {
    let action: String
    let outcome: String
  }

  private final class Counters: Sendable {
    let byKey = Mutex<[Key: Counter]>([:])
  }

  private let factory: any MetricsFactory
  private let counters = Counters()

  public init(factory: any MetricsFactory) { self.factory = factory }

  public var name: String { "metrics" }

  public func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action> {
    let key = Key(action: action.name, outcome: reduction.label)
    counters.byKey.withLock { counters in
      let counter =
        counters[key]
        ?? Counter(
          label: "lockstep_actions",
          dimensions: [("action", key.action), ("outcome", key.outcome)], factory: factory)
      counters[key] = counter
      counter.increment()
    }
    return .none
  }
}
