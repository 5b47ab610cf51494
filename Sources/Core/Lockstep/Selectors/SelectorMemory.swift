import Synchronization
public import Values

/// Remembers what a selector has computed last, and what from.
public final class SelectorMemory<State: Synchronizable, Output: Sendable>: Sendable {
  /// So that no other selector is taken for this one while it is remembered.
  private let selector: Selector<State, Output>
  private let function: Mutex<(State) -> Output>

  init(
    _ selector: Selector<State, Output>, _ function: sending @escaping (State) -> Output
  ) {
    self.selector = selector
    self.function = Mutex(function)
  }

  /// What the selector selects from a state. Costs what has changed since the last call.
  public func callAsFunction(_ state: State) -> Output { function.withLock { $0(state) } }
}
