import Lockstep
import Synchronization

/// The observers of single rows of a collection. A new state costs what has changed in the collection,
/// and the observers of those rows, however many others there are.
final class RowObservers<Owner: ObservableStore, Children: KeyedChildren>: Sendable {
  typealias Row = Children.ChildState
  typealias Continuation = AsyncStream<Row?>.Continuation

  private struct Storage: Sendable {
    /// The collection of which the observers know; nil while there are none.
    var told: Children?
    var observers: [Children.ChildID: [UInt64: Continuation]] = [:]
    var nextNumber: UInt64 = 1
    var hasEnded = false
  }

  private weak let owner: Owner?
  private let property: any KeyPath<Owner.State, Children> & Sendable
  private let storage = Mutex(Storage())

  init(of property: any KeyPath<Owner.State, Children> & Sendable, in owner: Owner) {
    self.property = property
    self.owner = owner
  }

  /// The row under a key, then each later value that differs.
  func values(of id: Children.ChildID) -> AsyncStream<Row?> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = begin(id, continuation)
      continuation.onTermination = { [self] reason in
        if case .cancelled = reason, let number { end(id, number) }
      }
    }
  }

  /// Nil if there will be no more values.
  private func begin(_ id: Children.ChildID, _ continuation: Continuation) -> UInt64? {
    // Retained until the lock is free: the end of the store ends its observers, under this lock.
    let owner = owner
    defer { withExtendedLifetime(owner) {} }
    let number = storage.withLock { storage -> UInt64? in
      guard !storage.hasEnded, let owner else { return nil }
      let children = owner.state[keyPath: property]
      Self.tell(children, &storage)
      continuation.yield(children.child(id))
      defer { storage.nextNumber += 1 }
      storage.observers[id, default: [:]][storage.nextNumber] = continuation
      return storage.nextNumber
    }
    if number == nil { continuation.finish() }
    return number
  }

  private func end(_ id: Children.ChildID, _ number: UInt64) {
    let released = storage.withLock { storage in
      storage.observers[id]?[number] = nil
      if storage.observers[id]?.isEmpty == true { storage.observers[id] = nil }
      // No observer needs it, and it would make the next changes copy what it shares.
      return storage.observers.isEmpty ? storage.told.take() : nil
    }
    withExtendedLifetime(released) {}
  }

  /// There is a new state. The newest is read under the lock, so values never go back. O(changes ·
  /// log n), and the observers of what has changed.
  func tell() {
    // As above.
    guard let owner else { return }
    defer { withExtendedLifetime(owner) {} }
    storage.withLock { storage in
      if storage.observers.isEmpty { return }
      Self.tell(owner.state[keyPath: property], &storage)
    }
  }

  private static func tell(_ children: Children, _ storage: inout Storage) {
    if let told = storage.told {
      children.forEachChange(from: told) { id, _, row in
        for continuation in storage.observers[id, default: [:]].values { continuation.yield(row) }
      }
    }
    storage.told = children
  }

  func end() {
    let observers = storage.withLock { storage in
      (storage.hasEnded, storage.told) = (true, nil)
      defer { storage.observers = [:] }
      return storage.observers
    }
    for row in observers.values { for continuation in row.values { continuation.finish() } }
  }
}
