public import Lockstep
import LockstepStore
public import Values

// As `ObservableStore` has them. Here too, so that a program that only mirrors needs no import of
// the store in one process.
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

  /// The value of a property, then every different one that its reader is in time for: a reader
  /// that is not gets the last. Ends with the store.
  public func observe<T: Synchronizable>(
    _ property: any KeyPath<F.State, T> & Sendable
  ) -> AsyncStream<T> {
    everyValue(property)
  }
}

extension PulseReader {
  /// The value of a pulse that is new; the first ever is not.
  func value<T>(of pulse: Pulse<T>) -> T? { isNew(pulse.count) ? pulse.wrappedValue : nil }
}
