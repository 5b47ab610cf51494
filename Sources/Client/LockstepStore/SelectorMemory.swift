import Lockstep
import Synchronization
import Values

/// What a selector has computed last for the observers of a store.
final class SelectorMemory<State: Synchronizable, Output: Sendable>: Sendable {
  /// So that no other selector is taken for this one while it is remembered.
  private let selector: Selector<State, Output>
  private let select: Mutex<(State) -> Output>

  init(of selector: Selector<State, Output>) {
    self.selector = selector
    select = Mutex(selector.remembering())
  }

  /// What the selector selects from a state. Costs what has changed since the last call.
  func callAsFunction(_ state: State) -> Output { select.withLock { $0(state) } }
}
