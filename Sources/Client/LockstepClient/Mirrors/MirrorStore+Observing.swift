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
    stateObservers.read(property) { state }
  }

  /// The newest value of a property of a state that may be absent; nil when it is. Reading it is
  /// observed.
  public subscript<Wrapped: Synchronizable, T: Synchronizable>(
    dynamicMember property: any KeyPath<Wrapped, T> & Sendable
  ) -> T? where F.State == Wrapped? {
    stateObservers.read(ifPresent: property) { state }
  }

  /// What a selector selects from the newest state. Reading it is observed, and remembered as long as the
  /// store lives: make the selector once.
  public subscript<T: Equatable>(selector: Selector<F.State, T>) -> T { newestValue(selector) }

  /// The value of a property, then each later value that differs. A slow reader skips intermediate
  /// values and gets the latest. Ends with the store.
  ///
  /// A computed property is computed for each new state: a `Selector` only when what it is made of has
  /// changed.
  public func observe<T: Synchronizable>(
    _ property: any KeyPath<F.State, T> & Sendable
  ) -> AsyncStream<T> {
    everyValue(property)
  }

  /// What a selector selects, then each later value that differs. A slow reader skips intermediate
  /// values and gets the latest. Ends with the store.
  public func observe<T: Equatable>(_ selector: Selector<F.State, T>) -> AsyncStream<T> {
    everyValue(selector)
  }

  /// The row of a collection under a key, nil while there is none, then each later value that differs.
  /// A slow reader skips intermediate values and gets the latest. Ends with the store.
  ///
  /// A new state costs what has changed in the collection, however many rows are observed.
  public func observe<Children: KeyedChildren>(
    _ children: any KeyPath<F.State, Children> & Sendable, id: Children.ChildID
  ) -> AsyncStream<Children.ChildState?> {
    everyRow(children, id)
  }
}

extension PulseReader {
  /// The value of a pulse if its counter is new; the very first counter is not.
  func value<T>(of pulse: Pulse<T>) -> T? { isNew(pulse.count) ? pulse.wrappedValue : nil }
}
