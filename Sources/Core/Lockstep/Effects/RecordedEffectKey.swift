// An effect's name can be a value of any type, so it has no form in which it could travel. What is
// written down of one is its text; where it is read again, the text finds the name that a running
// effect has. Names with equal texts are kept apart by their types, and children by their properties.

extension ScopedEffectKey {
  /// The children in whose features the name is one, from the outermost, and the name.
  public var texts: [String] { (scope + [key]).map(\.text) }

  /// The name of these texts, under which nothing runs.
  public init(texts: [String]) {
    let keys = texts.map { EffectKey(RecordedName(description: $0)) }
    self.init(scope: keys.dropLast(), key: keys.last ?? EffectKey(RecordedName(description: "")))
  }
}

extension StoreCore {
  /// The name with these texts, if effects run under it, in its feature or in those inside. O(effects).
  public func runningName(of texts: [String]) -> ScopedEffectKey? {
    effectNames.first { $0.texts == texts }
  }
}

extension EffectTable {
  /// The names under which effects run or wait, and the same names in the features around.
  var namesAround: [ScopedEffectKey] {
    (Array(names.keys) + windows.keys).flatMap { [$0] + $0.outer }
  }
}
