import Observation
import Synchronization
public import Values

// Theory of operation
//
// Code that reads a property of a store while its accesses are tracked (`withObservationTracking`,
// a SwiftUI view) observes a signal of that property. When the store has a new state, it compares
// the old and the new value of every property that was ever read, and gives the signals of those
// that differ. So an observer of one property is not notified of others, whatever the type of the
// state is, and a property that was never read costs nothing.
//
// Followers are notified of every pair of states: sequences, and the stores of parts.

/// The observers of a store's state.
public final class StateObservers<State: Synchronizable>: Sendable {
  typealias Follower = @Sendable (_ old: State, _ new: State) -> Void

  private struct Watch: Sendable {
    let signal: PropertySignal
    let isSame: @Sendable (State, State) -> Bool
  }

  private struct Storage: Sendable {
    /// The properties that were read: bounded by the number that the program names.
    var watches: [Watch] = []
    var places: [PropertyName: Int] = [:]
    var followers: [(number: UInt64, onChange: Follower, onEnd: @Sendable () -> Void)] = []
    var nextNumber: UInt64 = 1
    var hasEnded = false
  }

  private let storage = Mutex(Storage())

  package init() {}

  /// Record that the tracked code, if any, reads a property.
  package func access<T: Synchronizable>(_ property: any KeyPath<State, T> & Sendable) {
    access(PropertyName(property)) { $0[keyPath: property].isSame(as: $1[keyPath: property]) }
  }

  /// Record that the tracked code, if any, reads a property of a state that may be absent.
  package func access<Wrapped, T: Synchronizable>(
    ifPresent property: any KeyPath<Wrapped, T> & Sendable
  ) where State == Wrapped? {
    access(PropertyName(property)) {
      ($0?[keyPath: property]).isSame(as: $1?[keyPath: property])
    }
  }

  private func access(
    _ name: PropertyName, _ isSame: @escaping @Sendable (State, State) -> Bool
  ) {
    let signal = storage.withLock { storage in
      if let place = storage.places[name] { return storage.watches[place].signal }
      storage.places[name] = storage.watches.count
      let watch = Watch(signal: PropertySignal(), isSame: isSame)
      storage.watches.append(watch)
      return watch.signal
    }
    signal.access()
  }

  /// Call `onChange` for every change until `unfollow`. Returns the follower's number; nil, after
  /// calling `onEnd`, when there will be no more changes.
  func follow(
    onEnd: @escaping @Sendable () -> Void = {}, _ onChange: @escaping Follower
  ) -> UInt64? {
    let number = storage.withLock { storage -> UInt64? in
      if storage.hasEnded { return nil }
      defer { storage.nextNumber += 1 }
      storage.followers.append((storage.nextNumber, onChange, onEnd))
      return storage.nextNumber
    }
    if number == nil { onEnd() }
    return number
  }

  func unfollow(_ number: UInt64) {
    storage.withLock { storage in storage.followers.removeAll { $0.number == number } }
  }

  /// Notify the followers, and the observers whose properties changed. The new state must already
  /// be published.
  package func tell(from old: State, to new: State) {
    let (watches, followers) = storage.withLock { ($0.watches, $0.followers) }
    for follower in followers { follower.onChange(old, new) }
    for watch in watches where !watch.isSame(old, new) { watch.signal.give() }
  }

  /// Notify the followers that there will be no more changes.
  package func end() {
    let followers = storage.withLock { storage in
      storage.hasEnded = true
      defer { storage.followers = [] }
      return storage.followers
    }
    for follower in followers { follower.onEnd() }
  }
}

/// A property as a dictionary key.
///
/// Unchecked: made only of key paths that say that they are Sendable.
private struct PropertyName: Hashable, @unchecked Sendable {
  private let property: AnyKeyPath

  init<Root, T>(_ property: any KeyPath<Root, T> & Sendable) { self.property = property }
}

/// The observable with which observers of one property register.
private final class PropertySignal: Observable, Sendable {
  private let registrar = ObservationRegistrar()
  private var changes: Void { () }

  func access() { registrar.access(self, keyPath: \.changes) }

  func give() { registrar.withMutation(of: self, keyPath: \.changes) {} }
}
