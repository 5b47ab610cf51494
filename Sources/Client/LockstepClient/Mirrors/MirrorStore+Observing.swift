public import Lockstep
import LockstepStore
public import Values

// The same members as in `ObservableStore`, repeated so that a program that only mirrors need not
// import the in-process store.
extension MirrorStore {
  /// The newest value of a property. Reading it is observed.
  public subscript<T: Synchronizable>(
    dynamicMember property: any KeyPath<F.State, T> & Sendable
  ) -> T {
    stateObservers.access(property)
    return state[keyPath: property]
  }

  /// The newest value of a property of a state that may be absent; nil when it is. Reading it is
  /// observed.
  public subscript<Wrapped: Synchronizable, T: Synchronizable>(
    dynamicMember property: any KeyPath<Wrapped, T> & Sendable
  ) -> T? where F.State == Wrapped? {
    stateObservers.access(ifPresent: property)
    return state?[keyPath: property]
  }

  /// The value of a property, then each later value that differs. A slow reader skips intermediate
  /// values and gets the latest. Ends with the store.
  public func observe<T: Synchronizable>(
    _ property: any KeyPath<F.State, T> & Sendable
  ) -> AsyncStream<T> {
    everyValue(property)
  }
}

extension PulseReader {
  /// The value of a pulse if its counter is new; the very first counter is not.
  func value<T>(of pulse: Pulse<T>) -> T? { isNew(pulse.count) ? pulse.wrappedValue : nil }
}
