import Lockstep
import Observation
import Synchronization
public import Values

// Theory of operation
//
// Code that reads a property of a store while its accesses are tracked (`withObservationTracking`,
// a SwiftUI view) observes a signal of that property. The store remembers which value was read. When
// it has a new state, it compares the property's value with that one, and gives the signal if it
// differs. So an observer of one property is not notified of others, whatever the type of the state
// is, and a property that was never read costs nothing.
//
// The value that was read may be newer than the state of which observers were notified last: that is
// why it is compared, and not the former state.
//
// Followers are notified of every pair of states: sequences, and the stores of parts. Sequences of
// rows follow together (`RowObservers`).

/// The observers of a store's state.
public final class StateObservers<State: Synchronizable>: Sendable {
  typealias Follower = @Sendable (_ old: State, _ new: State) -> Void

  private struct Storage: Sendable {
    /// What was read: bounded by the number of properties and selectors that the program names.
    var watches: [WatchName: any StateWatch<State>] = [:]
    var followers: [(number: UInt64, onChange: Follower, onEnd: @Sendable () -> Void)] = []
    var nextNumber: UInt64 = 1
    var hasEnded = false
    /// The memories of the selectors that are in use; and how many there were when unused ones were
    /// removed last.
    var memories: [ObjectIdentifier: WeakMemory] = [:]
    var keptMemories = 0
    /// The `RowObservers` of collections.
    var rows: [PropertyName: any Sendable] = [:]
  }

  private let storage = Mutex(Storage())

  package init() {}

  // MARK: Reading

  /// Read a property of the newest state, and record that the tracked code, if any, does.
  package func read<T: Synchronizable>(
    _ property: any KeyPath<State, T> & Sendable, of state: () -> State
  ) -> T {
    read(.property(PropertyName(property)), of: state) {
      Watch({ $0[keyPath: property] }, { $0.isSame(as: $1) })
    }
  }

  /// Read a property of a state that may be absent.
  package func read<Wrapped, T: Synchronizable>(
    ifPresent property: any KeyPath<Wrapped, T> & Sendable, of state: () -> State
  ) -> T? where State == Wrapped? {
    read(.property(PropertyName(property)), of: state) {
      Watch({ $0?[keyPath: property] }, { $0.isSame(as: $1) })
    }
  }

  /// Read what a selector selects from the newest state.
  func read<T: Equatable>(
    _ selector: Selector<State, T>, of state: () -> State
  ) -> T {
    read(.selector(ObjectIdentifier(selector)), of: state) {
      let memory = memory(of: selector)
      return Watch({ memory($0) }, { $0 == $1 })
    }
  }

  private func read<T>(
    _ name: WatchName, of state: () -> State, _ make: () -> Watch<State, T>
  ) -> T {
    // A name stands for one type of values.
    let known = storage.withLock { $0.watches[name] } as? Watch<State, T>
    let watch = known ?? make()
    guard known == nil else { return watch.read(state) }
    let entered = storage.withLock { storage in
      if let other = storage.watches[name] as? Watch<State, T> { return other }
      storage.watches[name] = watch
      return watch
    }
    return entered.read(state)
  }

  /// The memory of a selector, which all its observers share.
  func memory<T>(of selector: Selector<State, T>) -> SelectorMemory<State, T> {
    let name = ObjectIdentifier(selector)
    // Released when the lock is free.
    var dead: [ObjectIdentifier: WeakMemory] = [:]
    defer { withExtendedLifetime(dead) {} }
    return storage.withLock { storage in
      if let known = storage.memories[name]?.memory as? SelectorMemory<State, T> { return known }
      let memory = SelectorMemory(of: selector)
      storage.memories[name] = WeakMemory(memory)
      if storage.memories.count > 2 * storage.keptMemories + 16 {
        dead = storage.memories.filter { $0.value.memory == nil }
        for name in dead.keys { storage.memories[name] = nil }
        storage.keptMemories = storage.memories.count
      }
      return memory
    }
  }

  /// The observers of the rows of a collection, which are told of a new state together.
  func rows<Owner: ObservableStore<State>, Children: KeyedChildren>(
    of property: any KeyPath<State, Children> & Sendable, in store: Owner
  ) -> RowObservers<Owner, Children> {
    let name = PropertyName(property)
    let known = storage.withLock { $0.rows[name] } as? RowObservers<Owner, Children>
    if let known { return known }
    let rows = RowObservers(of: property, in: store)
    let entered = storage.withLock { storage in
      if let other = storage.rows[name] as? RowObservers<Owner, Children> { return other }
      storage.rows[name] = rows
      return rows
    }
    if entered === rows { _ = follow(onEnd: { rows.end() }) { _, _ in rows.tell() } }
    return entered
  }

  // MARK: Following

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
    let (watches, followers) = storage.withLock { ($0.watches.values, $0.followers) }
    for follower in followers { follower.onChange(old, new) }
    for watch in watches { watch.tell(new) }
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

/// What was read of a store.
private protocol StateWatch<State>: Sendable {
  associatedtype State

  /// Give the signal if a value was read or told that is not the one of the new state.
  func tell(_ new: State)
}

/// Remembers the value that was read of a store.
private final class Watch<State: Synchronizable, T: Sendable>: StateWatch {
  private struct Seen: Sendable {
    /// The value that was read or told last; nil if none was read.
    var value: T?
    /// Whether different values were read since the last signal.
    var areSeveral = false
    /// How often a state was told, and a value read.
    var told: UInt64 = 0
    var reads: UInt64 = 0
  }

  private let signal = PropertySignal()
  private let value: @Sendable (State) -> T
  private let isSame: @Sendable (T, T) -> Bool
  private let seen = Mutex(Seen())

  init(_ value: @escaping @Sendable (State) -> T, _ isSame: @escaping @Sendable (T, T) -> Bool) {
    self.value = value
    self.isSame = isSame
  }

  /// Read the newest state's value.
  func read(_ state: () -> State) -> T {
    signal.access()
    while true {
      let told = seen.withLock { $0.told }
      let value = value(state())
      let isNoted = seen.withLock { seen in
        // A state that was told meanwhile was not compared with this value.
        guard seen.told == told else { return false }
        if let former = seen.value, !isSame(former, value) { seen.areSeveral = true }
        seen.value = .some(value)
        seen.reads += 1
        return true
      }
      if isNoted { return value }
    }
  }

  func tell(_ new: State) {
    let before = seen.withLock { seen in
      seen.told += 1
      return seen
    }
    guard let read = before.value else { return }
    let value = value(new)
    if !before.areSeveral, isSame(read, value) { return }
    seen.withLock { seen in
      // What was read meanwhile is compared with the next state.
      guard seen.reads == before.reads else { return }
      // As if it were read: an observer on another thread may not have been registered in time, and
      // is told of the next change.
      (seen.value, seen.areSeveral) = (value, false)
    }
    signal.give()
  }
}

/// The memory of a selector, as long as it is used.
private struct WeakMemory: Sendable {
  weak let memory: (any (AnyObject & Sendable))?

  init(_ memory: any (AnyObject & Sendable)) { self.memory = memory }
}

/// What tracked code reads, as a dictionary key. A watch of a selector keeps it.
private enum WatchName: Hashable {
  case property(PropertyName)
  case selector(ObjectIdentifier)
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
