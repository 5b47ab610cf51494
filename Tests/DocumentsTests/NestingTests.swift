import Documents
import Lockstep
import Testing
import Values

/// The nodes of a document remember how deep it nests.
@Suite struct NestingTests {
  private func levels(_ value: Value) -> Int {
    switch value {
    case .object(let entries): 1 + (entries.values.map(levels).max() ?? 0)
    case .array(let elements): 2 + (elements.map(levels).max() ?? 0)
    default: 0
    }
  }

  @Test(arguments: 0..<20) func `the remembered depth equals the depth that a walk finds`(
    seed: Int
  ) throws {
    var random = SeededGenerator(seed)
    var document = Document(random.value(depth: 4), seed: testSeed)
    var copies: [(value: Value, levels: Int)] = []
    for step in 0..<300 {
      try? reduce(random.action(in: document.root), into: &document)
      if step.isMultiple(of: 3) { document.rollBack() }
      #expect(document.root.patchLevels == levels(document.root))
      if step.isMultiple(of: 50) { copies.append((document.root, levels(document.root))) }
    }
    for copy in copies { #expect(copy.value.patchLevels == copy.levels) }
  }

  /// Times a transaction that moves a map down two levels and back up, again and again.
  private func moves(_ size: Int) throws -> Duration {
    var entries = TrieMap<String, Value>(seed: testSeed)
    for index in 0..<size { entries.updateValue([:], forKey: "key \(index)") }
    var document = Document(["m": .object(entries), "x": ["y": [:]]], seed: testSeed)
    let actions = (0..<2000).map { index -> DocumentAction in
      index.isMultiple(of: 2)
        ? .move(from: ["m"], to: ["x", "y", "m"]) : .move(from: ["x", "y", "m"], to: ["m"])
    }
    let clock = ContinuousClock()
    let time = try clock.measure { try reduce(.transaction(actions), into: &document) }
    #expect(document.root.child("m") == .object(entries))
    return time
  }

  @Test func `a move costs the length of its paths, whatever the size of the value`() throws {
    var ratios: [Double] = []
    for _ in 0..<5 {
      let small = try moves(10)
      ratios.append(try moves(50_000) / small)
    }
    // A walk over the 50,000 entries at each move would take some thousand times as long.
    #expect(ratios.min() ?? 0 < 20, "\(ratios)")
  }

  @Test func `an action takes no more steps than the limit`() throws {
    var limits = DocumentFeature.Limits()
    // 2 for the transaction, 2 + 2 for the increment, 2 + 4 for the move.
    limits.maxSteps = 12
    var document = Document(["a": ["b": 1]], seed: testSeed)
    let two = DocumentAction.transaction([
      .increment(["a", "b"], by: 1), .move(from: ["a", "b"], to: ["a", "c"]),
    ])
    try reduce(two, into: &document, limits: limits)
    #expect(throws: Rejection.self) {
      try reduce(
        .transaction([two, .increment(["a", "c"], by: 1)]), into: &document, limits: limits)
    }
  }
}
