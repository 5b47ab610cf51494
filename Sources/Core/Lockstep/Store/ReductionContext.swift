import Values

/// What a reduction may ask for: the cause, time and seed of its action, which children have
/// effects running, and a place for warnings.
///
/// Unchecked: made for one reduction, which is synchronous, and used by it alone.
final class ReductionContext: @unchecked Sendable {
  let cause: Cause
  let time: Timestamp
  /// Those of several children whose effects run, by the scope that they are in.
  let children: [[EffectKey]: [EffectKey: Int]]
  private var random: SplitMix64
  /// Where in the tree of features the reduction is.
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

  /// The children of the feature that is reducing whose effects run.
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
