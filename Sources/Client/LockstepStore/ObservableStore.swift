public import Lockstep
public import Observation
import Synchronization
public import Values

/// A store, or a live copy of one, whose properties can be observed one by one.
///
/// `store.count` is observed: an access that is tracked (`withObservationTracking`) is notified
/// when the property differs, and only then. `store.state` is a snapshot, and reading it is not
/// observed.
@dynamicMemberLookup
public protocol ObservableStore<State>: AnyObject, Observable, Sendable {
  associatedtype State: Synchronizable

  /// The newest state. A copy is a consistent snapshot, O(1); reading it is not observed.
  var state: State { get }

  /// The observers of the state.
  var stateObservers: StateObservers<State> { get }
}

extension ObservableStore {
  /// The newest value of a property. Reading it is observed.
  public subscript<T: Synchronizable>(
    dynamicMember property: any KeyPath<State, T> & Sendable
  ) -> T {
    stateObservers.read(property) { state }
  }

  /// The newest value of a property of a state that may be absent; nil when it is. Reading it is
  /// observed.
  public subscript<Wrapped: Synchronizable, T: Synchronizable>(
    dynamicMember property: any KeyPath<Wrapped, T> & Sendable
  ) -> T? where State == Wrapped? {
    stateObservers.read(ifPresent: property) { state }
  }

  /// What a selector selects from the newest state. Reading it is observed, and remembered as long as the
  /// store lives: make the selector once.
  public subscript<T: Equatable>(selector: Selector<State, T>) -> T { newestValue(selector) }

  /// The value of a property, then each later value that differs. A slow reader skips intermediate
  /// values and gets the latest. Ends with the store.
  ///
  /// A computed property is computed for each new state: a `Selector` only when what it is made of has
  /// changed.
  public func observe<T: Synchronizable>(
    _ property: any KeyPath<State, T> & Sendable
  ) -> AsyncStream<T> {
    everyValue(property)
  }

  /// What a selector selects, then each later value that differs. A slow reader skips intermediate
  /// values and gets the latest. Ends with the store.
  public func observe<T: Equatable>(_ selector: Selector<State, T>) -> AsyncStream<T> {
    everyValue(selector)
  }

  /// The row of a collection under a key, nil while there is none, then each later value that differs.
  /// A slow reader skips intermediate values and gets the latest. Ends with the store.
  ///
  /// A new state costs what has changed in the collection, however many rows are observed.
  public func observe<Children: KeyedChildren>(
    _ children: any KeyPath<State, Children> & Sendable, id: Children.ChildID
  ) -> AsyncStream<Children.ChildState?> {
    everyRow(children, id)
  }

  /// The implementation of the subscript.
  package func newestValue<T: Equatable>(_ selector: Selector<State, T>) -> T {
    stateObservers.read(selector) { state }
  }

  /// The implementation of `observe`.
  package func everyValue<T: Synchronizable>(
    _ property: any KeyPath<State, T> & Sendable
  ) -> AsyncStream<T> {
    everyValue {
      $0[keyPath: property]
    } isSame: {
      $0.isSame(as: $1)
    }
  }

  /// The implementation of `observe`.
  package func everyValue<T: Equatable>(_ selector: Selector<State, T>) -> AsyncStream<T> {
    let memory = stateObservers.memory(of: selector)
    return everyValue {
      memory($0)
    } isSame: {
      $0 == $1
    }
  }

  /// The implementation of `observe`.
  package func everyRow<Children: KeyedChildren>(
    _ children: any KeyPath<State, Children> & Sendable, _ id: Children.ChildID
  ) -> AsyncStream<Children.ChildState?> {
    stateObservers.rows(of: children, in: self).values(of: id)
  }

  private func everyValue<T: Sendable>(
    _ value: @escaping @Sendable (State) -> T, isSame: @escaping @Sendable (T, T) -> Bool
  ) -> AsyncStream<T> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let last = Guarded<T?>(nil)
      // It reads the newest state under the lock, so the values never go back.
      let tell: @Sendable () -> Void = { [weak self] in
        last.withLock { last in
          guard let state = self?.state else { return }
          let new = value(state)
          if let last, isSame(last, new) { return }
          last = .some(new)
          continuation.yield(new)
        }
      }
      follow(continuation) { _, _ in tell() }
      tell()
    }
  }

  func follow<Element>(
    _ continuation: AsyncStream<Element>.Continuation,
    _ onChange: @escaping @Sendable (_ old: State, _ new: State) -> Void
  ) {
    let observers = stateObservers
    let number = observers.follow(onEnd: { continuation.finish() }, onChange)
    continuation.onTermination = { reason in
      if case .cancelled = reason, let number { observers.unfollow(number) }
    }
  }

  /// The state, then the state after every reduction that changed it, without omissions. A reader
  /// that is slower than the store makes the stream grow.
  func everyChange() -> AsyncStream<State> {
    AsyncStream { continuation in
      let last = Guarded<State?>(nil)
      // A concurrent change waits for the lock, and is dropped if the initial state contains it.
      last.withLock { newest in
        follow(continuation) { _, new in
          last.withLock { last in
            if last?.isSame(as: new) == true { return }
            last = new
            continuation.yield(new)
          }
        }
        newest = state
        continuation.yield(state)
      }
    }
  }

  /// The value of a pulse each time it is assigned from now on.
  func everyPulse<T: Synchronizable>(
    _ property: any KeyPath<State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    AsyncStream { continuation in
      let reader = PulseReader()
      reader.begin {
        follow(continuation) { _, new in
          let pulse = new[keyPath: property]
          if reader.isNew(pulse.count) { continuation.yield(pulse.wrappedValue) }
        }
        return state[keyPath: property].count
      }
    }
  }
}

/// Acts once for each counter of a pulse that differs from the last it has seen.
package final class PulseReader: Sendable {
  private let count = Mutex<UInt64?>(nil)

  package init() {}

  /// Record the initial counter, with which later ones are compared.
  func begin(_ body: () -> UInt64) { count.withLock { $0 = body() } }

  /// Whether a counter is new; the very first is not.
  package func isNew(_ new: UInt64) -> Bool {
    count.withLock { count in
      defer { count = new }
      return count != nil && count != new
    }
  }
}

/// A value behind a lock, so that closures can share it.
final class Guarded<Value: Sendable>: Sendable {
  private let value: Mutex<Value>

  init(_ value: Value) { self.value = Mutex(value) }

  func withLock<R: Sendable>(_ body: (inout Value) -> R) -> R { value.withLock { body(&$0) } }
}
