public import CBOR
public import Values

/// How many reductions have changed the state in this epoch.
public typealias Revision = UInt64

/// The authority over one state: runs actions through the reducer, one at a time, and makes the
/// patch of each change. It has no thread, no clock and no sockets.
public struct StoreCore<R: Reducer>: Sendable {
  public let reducer: R
  /// The newest state. A copy is a consistent snapshot, O(1).
  public private(set) var state: R.State
  public private(set) var revision: Revision
  /// What the collections of the state hash with.
  public let seed: HashSeed

  /// What one action came to.
  public enum Reduction: Equatable, Sendable {
    /// The state changed: this is its new revision, and the patch was appended.
    case changed(Revision)
    /// The action was done and changed nothing that travels.
    case unchanged
    case rejected(Rejection)
  }

  /// A store whose state stands at `revision`.
  public init(_ state: R.State, reducer: R, seed: HashSeed, revision: Revision = 0) {
    self.reducer = reducer
    self.state = state
    self.state.adopt(seed: seed)
    self.revision = revision
    self.seed = seed
    // What the initial state noted while it was made is history that nobody has seen.
    var ignored = CBOREncoder()
    _ = self.state.settle(into: &ignored)
  }

  /// Run one action, and append the patch of what it changed to `patch`.
  public mutating func send(_ action: R.Action, patch: inout CBOREncoder) -> Reduction {
    do throws(Rejection) {
      try reducer.reduce(into: &state, action: action)
    } catch {
      state.rollBack()
      return .rejected(error)
    }
    guard state.settle(into: &patch) else { return .unchanged }
    revision += 1
    return .changed(revision)
  }
}
