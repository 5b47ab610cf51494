import Values

/// The context of a reduction: the cause, time and seed of its action, the children with running
/// effects, and the warnings so far.
///
/// Unchecked: made for one reduction, which is synchronous, and used by it alone.
final class ReductionContext: @unchecked Sendable {
  let cause: Cause
  let time: Timestamp
  /// The number of running effects of each child in a collection (`forEach`), by scope.
  let children: [[EffectKey]: [EffectKey: Int]]
  private var random: SplitMix64
  /// The position of the reduction in the tree of features.
  private(set) var scope: [EffectKey] = []
  private(set) var warnings: [String] = []

  init(
    cause: Cause, time: Timestamp, seed: UInt64, children: [[EffectKey]: [EffectKey: Int]]
  ) {
    self.cause = cause
    self.time = time
    self.children = children
    random = SplitMix64(seed)
  }

  static var current: ReductionContext? { DependencyValues.current.reduction }

  func nextRandom() -> UInt64 { random.next() }

  func warn(_ text: String) { warnings.append(text) }

  /// The children with running effects, of the feature that is reducing.
  var runningChildren: Dictionary<EffectKey, Int>.Keys? { children[scope]?.keys }

  /// Reduce a child.
  func enter<R>(
    _ step: EffectKey, _ body: () throws(Rejection) -> R
  ) throws(Rejection) -> R {
    scope.append(step)
    defer { scope.removeLast() }
    return try body()
  }
}
