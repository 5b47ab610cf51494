// Theory of operation
//
// The effects that a store runs form a forest. A leaf is an operation that runs as a task of the
// shell; a group holds what `merge`, `concatenate` and `cancellable` put together. A group is done
// when its children are and nothing of its sequence is left; then its parent has one child less.
//
// The table is a value and starts nothing itself. It records orders for the shell (`orders`): start
// this leaf, cancel that one. A leaf enters the table when it is ordered and leaves it when it ends
// or is cancelled; actions from a leaf that has left are ignored. Effects that complete at once,
// such as `send`, never enter it.
//
// Names belong to a scope: the children on the path from the root to the feature that returned the
// effect (`Scope`, `forEach`, `ifLet`). So equal names in two rows of a list differ. Cancelling a
// name reaches the feature's own effects of that name and those of the features inside of it; not
// its siblings', nor its parent's.

/// An order to the shell for a store's effects; orders are executed in sequence.
public enum EffectOrder: Hashable, Sendable {
  /// Run the operation of this effect as a task.
  case start(EffectID)
  /// Cancel its task.
  case cancel(EffectID)
  /// Cancel the tasks that effects run under this name (`withTaskCancellation`).
  case cancelTasks(ScopedEffectKey)
}

/// The name of an effect, and its scope: the children on the path to its feature.
public struct ScopedEffectKey: Hashable, Sendable {
  var scope: [EffectKey]
  var key: EffectKey

  package init(scope: [EffectKey], key: EffectKey) {
    self.scope = scope
    self.key = key
  }

  /// The same name in the enclosing features.
  var outer: [ScopedEffectKey] {
    scope.indices.map { ScopedEffectKey(scope: Array(scope[..<$0]), key: key) }
  }
}

/// An index of the names in use, searched by the same name in an enclosing feature.
struct ScopedEffectKeys: Sendable {
  private var inner: [ScopedEffectKey: Set<ScopedEffectKey>] = [:]

  /// O(depth), as is `remove`.
  mutating func insert(_ name: ScopedEffectKey) {
    for outer in name.outer { inner[outer, default: []].insert(name) }
  }

  mutating func remove(_ name: ScopedEffectKey) {
    for outer in name.outer {
      inner[outer]?.remove(name)
      if inner[outer]?.isEmpty == true { inner[outer] = nil }
    }
  }

  /// The name, and the same name in the features inside its own, in no order.
  func reached(by name: ScopedEffectKey) -> [ScopedEffectKey] { [name] + (inner[name] ?? []) }
}

/// The running effects of a store.
struct EffectTable<Action: Sendable>: Sendable {
  typealias NodeID = UInt64

  /// A running operation.
  struct Leaf: Sendable {
    let work: Effect<Action>.Work
    let cause: Cause
    /// The action that the effect was returned for.
    let sequence: UInt64
    let actionName: String
    let middleware: String?
    let started: Timestamp
    var sent: UInt64 = 0
    /// The throttled name whose interval this leaf waits for.
    var window: ScopedEffectKey?
  }

  enum Body: Sendable {
    case leaf(Leaf)
    /// `rest` is the part of the sequence that starts once the children are done.
    case group(rest: ArraySlice<Effect<Action>>)
  }

  struct Node: Sendable {
    var parent: NodeID?
    var children: Set<NodeID> = []
    var body: Body
    var context: Context
    var key: ScopedEffectKey?
    /// Its children are being started: it is not done yet, even if they are.
    var isStarting = false

    /// Whether it waits for the end of a throttle interval.
    var isWindow: Bool { if case .leaf(let leaf) = body { leaf.window != nil } else { false } }
  }

  /// The context that an effect inherits.
  struct Context: Sendable {
    var cause: Cause
    var sequence: UInt64
    var actionName: String
    var middleware: String?
    var time: Timestamp
    var scope: [EffectKey] = []
    var isOwned = false
  }

  /// The record of a leaf that ended by itself.
  struct Ended: Sendable {
    let id: NodeID
    let name: String
    let place: String
    let actionName: String
  }

  struct Window: Sendable {
    var how: Effect<Action>.Throttle
    var pending: (effect: Effect<Action>, context: Context)?
  }

  var nodes: [NodeID: Node] = [:]
  var names: [ScopedEffectKey: Set<NodeID>] = [:]
  var namesInUse = ScopedEffectKeys()
  var windows: [ScopedEffectKey: Window] = [:]
  var windowsInUse = ScopedEffectKeys()
  /// The number of running leaves in each child of a collection (`forEach`), by scope.
  var children: [[EffectKey]: [EffectKey: Int]] = [:]
  /// The number of leaves and waiting sends that the cascade of each action from outside still has.
  var open: [UInt64: Int] = [:]
  var owned: [UInt64: Set<NodeID>] = [:]
  /// The number of running effects, except those that wait for the end of a throttle interval.
  var count = 0
  /// The number of cancelled effects.
  var cancelled = 0
  var next: NodeID = 1
  let salt: UInt64
  /// The latest effects that ended by themselves, for warnings about actions that come too late.
  var ended: [Ended] = []

  var orders: [EffectOrder] = []
  /// Actions of `send` effects, for the store to queue.
  var sends: [(action: Action, cause: Cause)] = []

  init(salt: UInt64) { self.salt = salt }

  func id(_ node: NodeID) -> EffectID { EffectID(node, salt: salt) }
}
