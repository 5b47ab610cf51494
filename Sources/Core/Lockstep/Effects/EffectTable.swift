// Theory of operation
//
// The effects that a store runs form a forest. A leaf is an operation that runs as a task of the
// shell; a group holds what `merge`, `concatenate` and `cancellable` put together. A group is done
// when its children are and nothing of its sequence is left; then its parent has one child less.
//
// The table is a value and starts nothing itself. What the shell must do is noted (`orders`):
// start this leaf, cancel that one. A leaf enters the table when it is ordered and leaves it when
// it ends or is cancelled; what a leaf that has left sends is ignored. Effects that complete at
// once, such as `send`, never enter it.
//
// Names belong to a scope: the children on the way from the root to the feature that returned the
// effect (`Scope`, `forEach`, `ifLet`). So equal names in two rows of a list differ. Cancelling a name
// reaches the feature's own effects of that name and those of the features inside of it; not its
// siblings', nor its parent's.

/// What a shell must do for a store's effects, in order.
public enum EffectOrder: Hashable, Sendable {
  /// Run the operation of this effect as a task.
  case start(EffectID)
  /// Cancel its task.
  case cancel(EffectID)
  /// Cancel the tasks that effects run under this name inside themselves.
  case cancelTasks(ScopedEffectKey)
}

/// The name of an effect, and the children in whose features it is one.
public struct ScopedEffectKey: Hashable, Sendable {
  var scope: [EffectKey]
  var key: EffectKey

  package init(scope: [EffectKey], key: EffectKey) {
    self.scope = scope
    self.key = key
  }

  /// The same name in the features around.
  var outer: [ScopedEffectKey] {
    scope.indices.map { ScopedEffectKey(scope: Array(scope[..<$0]), key: key) }
  }
}

/// The names in use, to be found by the same name in a feature around theirs.
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

  /// The name, and those that are the same inside of its feature, in no order.
  func reached(by name: ScopedEffectKey) -> [ScopedEffectKey] { [name] + (inner[name] ?? []) }
}

/// The running effects of a store.
struct EffectTable<Action: Sendable>: Sendable {
  typealias NodeID = UInt64

  /// An operation that runs.
  struct Leaf: Sendable {
    let work: Effect<Action>.Work
    let cause: Cause
    /// The action that the effect was returned for.
    let sequence: UInt64
    let actionName: String
    let middleware: String?
    let started: Timestamp
    var sent: UInt64 = 0
    /// The name whose interval this leaf waits for.
    var window: ScopedEffectKey?
  }

  enum Body: Sendable {
    case leaf(Leaf)
    /// What follows once the children are done.
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

    /// Whether it waits for the end of an interval.
    var isWindow: Bool { if case .leaf(let leaf) = body { leaf.window != nil } else { false } }
  }

  /// What an effect inherits.
  struct Context: Sendable {
    var cause: Cause
    var sequence: UInt64
    var actionName: String
    var middleware: String?
    var time: Timestamp
    var scope: [EffectKey] = []
    var isOwned = false
  }

  /// What is remembered of a leaf that ended by itself.
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
  /// How many leaves run in each of the several children of each scope.
  var children: [[EffectKey]: [EffectKey: Int]] = [:]
  /// How many leaves, and sends that wait, each action from outside still has.
  var open: [UInt64: Int] = [:]
  var owned: [UInt64: Set<NodeID>] = [:]
  /// How many effects run, those aside that wait for the end of an interval.
  var count = 0
  /// How many have been cancelled.
  var cancelled = 0
  var next: NodeID = 1
  let salt: UInt64
  /// The latest effects that ended by themselves, to tell of actions that come too late.
  var ended: [Ended] = []

  var orders: [EffectOrder] = []
  /// Actions that effects sent at once.
  var sends: [(action: Action, cause: Cause)] = []

  init(salt: UInt64) { self.salt = salt }

  func id(_ node: NodeID) -> EffectID { EffectID(node, salt: salt) }
}
