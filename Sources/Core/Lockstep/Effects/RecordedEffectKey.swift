// An effect's name can be a value of any type, so it has no encoded form. A recording has its text;
// at a replay, the text finds the name of a running effect. Names with equal texts are
// distinguished by their types, and children by their properties.

extension ScopedEffectKey {
  /// The texts of the children whose features contain the name, from the outermost, and of the
  /// name.
  public var texts: [String] { (scope + [key]).map(\.text) }

  /// Whether only the texts are known.
  public var isRecorded: Bool { key.isRecorded }

  /// A name with these texts, under which nothing runs.
  public init(texts: [String]) {
    let keys = texts.map { EffectKey(RecordedName(description: $0)) }
    self.init(scope: keys.dropLast(), key: keys.last ?? EffectKey(RecordedName(description: "")))
  }
}

extension StoreCore {
  /// The name with these texts, if effects run under it, in its feature or in those inside.
  /// O(effects).
  public func runningName(of texts: [String]) -> ScopedEffectKey? {
    effectNames.first { $0.texts == texts }
  }
}

extension EffectTable {
  /// The names under which effects run or wait, and the same names in the enclosing features.
  var namesAround: [ScopedEffectKey] {
    (Array(names.keys) + windows.keys).flatMap { [$0] + $0.outer }
  }
}
