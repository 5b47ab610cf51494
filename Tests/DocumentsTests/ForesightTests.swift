import CBOR
import Documents
import Lockstep
import Testing
import Values

/// What is worked out about an action before it is performed is what it does, whatever others have changed
/// meanwhile, or is not used.
@Suite struct ForesightTests {
  /// What an action did to a document.
  private struct Result: Equatable {
    var root: Value
    var patch: [UInt8]
    var rejection: Rejection?

    static func == (first: Result, second: Result) -> Bool {
      first.root.isSame(as: second.root) && first.patch == second.patch
        && first.rejection == second.rejection
    }
  }

  private let feature = DocumentFeature()

  /// Perform an action, with what is known about it if that holds. Returns whether it does.
  private func perform(
    _ action: DocumentAction, on document: Document, knowing foresight: Foresight? = nil
  ) -> (result: Result, holds: Bool) {
    var document = document
    let holds = feature.recall(foresight, in: &document)
    var rejection: Rejection?
    do throws(Rejection) {
      _ = try feature.reduce(into: &document, action: action)
    } catch {
      rejection = error
      document.rollBack()
    }
    var encoder = CBOREncoder()
    _ = document.settle(into: &encoder)
    return (Result(root: document.root, patch: encoder.bytes, rejection: rejection), holds)
  }

  /// A document after some actions of others.
  private func changed(
    _ document: Document, _ random: inout SeededGenerator, _ count: Int
  ) -> Document {
    var document = document
    for _ in 0..<count {
      let action = random.action(in: document.root, depth: 1)
      try? reduce(action, into: &document)
    }
    return document
  }

  private func ground(_ random: inout SeededGenerator) -> Document {
    guard random.chance(60) else { return Document(random.value(depth: 4), seed: testSeed) }
    // Places enough for changes that do not touch each other.
    let names = ["a", "b", "c", "d", "e\u{301}", "é", "", "-"]
    return Document(
      .object(TrieMap(uniqueKeysWithValues: names.map { ($0, random.value(depth: 3)) })),
      seed: testSeed)
  }

  @Test(arguments: 0..<16)
  func `an action does what was foreseen, whatever others have changed meanwhile`(part: Int) {
    var random = SeededGenerator(part)
    var (held, rejected, changedBetween) = (0, 0, 0)
    for _ in 0..<600 {
      let ground = ground(&random)
      var parts: [DocumentAction] = []
      for _ in 0..<(1 + random.below(5)) { parts.append(random.action(in: ground.root)) }
      let action = random.chance(50) ? .transaction(parts) : parts[0]
      guard let foresight = feature.foresee(action, in: ground) else { continue }
      let present = changed(ground, &random, random.below(3))
      let (result, holds) = perform(action, on: present, knowing: foresight)
      #expect(result == perform(action, on: present).result, "\(ground.root) \(action)")
      if holds {
        held += 1
        if result.rejection != nil { rejected += 1 }
        if !present.root.isSame(as: ground.root) { changedBetween += 1 }
      }
      // The second time, too, from where it was not to be known in time, or did not hold any more.
      let now = changed(present, &random, random.below(2))
      if let renewed = feature.foresee(action, in: present, renewing: foresight) {
        #expect(
          perform(action, on: now, knowing: renewed).result == perform(action, on: now).result,
          "\(ground.root) \(action)")
      }
    }
    #expect(held > 100 && rejected > 20 && changedBetween > 20)
  }

  @Test(arguments: 0..<8)
  func `what an action may not change holds after it`(part: Int) throws {
    var random = SeededGenerator(part + 100)
    var (harmless, harmful) = (0, 0)
    for _ in 0..<1500 {
      let ground = ground(&random)
      var parts: [DocumentAction] = []
      for _ in 0..<random.below(5) { parts.append(random.action(in: ground.root)) }
      guard let foresight = feature.foresee(.transaction(parts), in: ground) else { continue }
      var present = changed(ground, &random, random.below(2))
      var copy = present
      guard feature.recall(foresight, in: &copy) else { continue }
      let other = random.action(in: present.root, depth: 1)
      let mayChange = feature.mayChange(foresight, by: other, in: present)
      try? reduce(other, into: &present)
      let holds = feature.recall(foresight, in: &present)
      #expect(mayChange || holds, "\(ground.root) \(parts) \(other)")
      if !mayChange { harmless += 1 }
      if !holds { harmful += 1 }
    }
    #expect(harmless > 100 && harmful > 100, "\(harmless) \(harmful)")
  }

  @Test func `changes elsewhere are carried into what was foreseen, which is not done again`()
    throws
  {
    var entries = TrieMap<String, Value>(seed: testSeed)
    for index in 0..<2000 { entries.updateValue(.object(["n": 0]), forKey: "e\(index)") }
    let ground = Document(.object(entries), seed: testSeed)
    let action = DocumentAction.transaction(
      (0..<1000).map { .increment([.text("e\($0)"), "n"], by: 1) })
    let foresight = try #require(feature.foresee(action, in: ground))
    var present = ground
    for index in 1000..<1200 { try reduce(.set([.text("e\(index)"), "n"], 7), into: &present) }
    try reduce(.remove(["e1900"]), into: &present)
    try reduce(.set(["other"], 1), into: &present)
    try reduce(.set(["e0", "other"], 1), into: &present)
    let (result, holds) = perform(action, on: present, knowing: foresight)
    #expect(holds && result == perform(action, on: present).result)
    // The bytes are those that were foreseen, and not made again.
    #expect(address(of: result.patch) == address(of: foresight.patch))
  }

  private func address(of bytes: [UInt8]) -> UnsafeRawPointer? {
    bytes.withUnsafeBytes { $0.baseAddress }
  }

  @Test(
    arguments: [
      (.set(["e1", "n"], 5), false, true), (.set(["e1"], 5), false, true),
      (.remove(["e1"]), false, true), (.set([], [:]), false, true),
      (.set(["list"], [1]), false, true), (.set(["list", "0"], 5), false, true),
      (.set(["read"], 2), false, true), (.set(["list"], 1), false, true),
      (.set(["e2", "n"], 5), true, false), (.set(["e1", "m"], 5), true, false),
      // What is replaced by the same, and what is not allowed, could have changed it.
      (.set(["e1"], ["n": 1, "m": 2]), true, true), (.set(["read", "no"], 1), true, true),
    ] as [(DocumentAction, Bool, Bool)])
  func `what others change of the places that it reads or changes is seen`(
    other: DocumentAction, holds: Bool, mayChange: Bool
  ) throws {
    let ground = try document(#"{"e1": {"n": 1}, "e2": {"n": 1}, "list": [1, 2], "read": 1}"#)
    let action = DocumentAction.transaction([
      .increment(["e1", "n"], by: 1), .append(["list"], 3), .test(["read"], 1),
    ])
    let foresight = try #require(feature.foresee(action, in: ground))
    var present = ground
    #expect(feature.mayChange(foresight, by: other, in: present) == mayChange)
    try? reduce(other, into: &present)
    #expect(perform(action, on: present, knowing: foresight).holds == holds)
  }

  @Test(arguments: [-1, Int64.min, 2, 9, Int64.max])
  func `an index that no element has is compared with nothing`(index: Int64) throws {
    let ground = try document(#"{"list": [[1], [2]], "n": 1}"#)
    let place: Path = ["list", .integer(index)]
    for part in [
      .test(place, 5), .set(place, 5), .replace(place, 5), .insert(place, 5), .remove(place),
      .increment(place, by: 1), .merge(place, [:]), .append(place, 5),
      .move(from: place, to: ["n"]),
      .set(Path(place.keys + ["0"]), 5),
    ] as [DocumentAction] {
      let action = DocumentAction.transaction([.increment(["n"], by: 1), part])
      let foresight = feature.foresee(action, in: ground)
      for other in [.append(["list"], 3), .set(["list", "0"], 3)] as [DocumentAction] {
        var present = ground
        try reduce(other, into: &present)
        #expect(
          perform(action, on: present, knowing: foresight).result
            == perform(action, on: present).result, "\(part) \(other)")
      }
    }
  }

  @Test func `it is not looked for longer than that takes, but beside the loop`() throws {
    let ground = Document(.object(TrieMap(seed: testSeed)), seed: testSeed)
    let action = DocumentAction.transaction([.set(["mine"], ["a": 1])])
    let foresight = try #require(feature.foresee(action, in: ground))
    var present = ground
    for index in 0..<5000 { try reduce(.set([.text("e\(index)")], 1), into: &present) }
    #expect(!perform(action, on: present, knowing: foresight).holds)
    let renewed = try #require(feature.foresee(action, in: present, renewing: foresight))
    let (result, holds) = perform(action, on: present, knowing: renewed)
    #expect(holds && result == perform(action, on: present).result)
  }

  /// The places of an action are a tree, which is walked and released level by level.
  @Test func `a path of any length is foreseen, where the tree ends`() throws {
    let ground = try document(#"{"a": {"b": [1]}, "n": 1}"#)
    for start in [[], ["a"], ["a", "b"], ["a", "b", 0], ["a", "b", 1], ["n"]] as [[PathKey]] {
      let path = Path(start + [PathKey](repeating: 0, count: 200_000))
      for action in [
        .set(path, 1), .merge(path, ["a": 1]), .copy(from: ["n"], to: path),
        .move(from: path, to: ["n"]), .transaction([.increment(["n"], by: 1), .test(path, 1)]),
      ] as [DocumentAction] {
        let foresight = try #require(feature.foresee(action, in: ground))
        let (result, holds) = perform(action, on: ground, knowing: foresight)
        #expect(holds && result == perform(action, on: ground).result)
      }
    }
  }

  @Test(
    arguments: [
      (.set(["o", "c"], 5), true), (.set(["other"], 5), true), (.set(["o", "a", "y"], 5), true),
      (.set(["o", "a", "x"], 5), false), (.set(["o", "a"], 5), false), (.remove(["o"]), false),
      (.set(["o", "b"], 5), false), (.set(["o", "d"], 5), false), (.set(["o", "e"], 5), false),
    ] as [(DocumentAction, Bool)])
  func `a merge touches the members that it names`(other: DocumentAction, holds: Bool) throws {
    let ground = try document(#"{"o": {"a": {"x": 1, "y": 1}, "b": 1, "c": 1, "d": {"z": 1}}}"#)
    let action = DocumentAction.merge(
      ["o"], ["a": ["x": 2], "b": nil, "d": [:], "e": ["new": 1]])
    let foresight = try #require(feature.foresee(action, in: ground))
    var present = ground
    try reduce(other, into: &present)
    let (result, isHeld) = perform(action, on: present, knowing: foresight)
    #expect(isHeld == holds && result == perform(action, on: present).result)
  }

  @Test func `what was foreseen is known about one action, not about what follows from it`() throws
  {
    var present = try document(#"{"list": [2]}"#)
    let action = DocumentAction.insert(["list", "0"], 1)
    #expect(feature.recall(feature.foresee(action, in: present), in: &present))
    _ = try feature.reduce(into: &present, action: action)
    #expect(!settled(&present).isEmpty)
    _ = try feature.reduce(into: &present, action: .set(["list", "0"], 1))
    #expect(settled(&present).isEmpty)
    #expect(present.root == (try json(#"{"list": [1, 2]}"#)))
  }

  @Test func `another action than the foreseen one does what it does`() throws {
    let ground = try document(#"{"n": 1}"#)
    for (first, second) in [
      (.set(["n"], [1]), .set(["n"], [2])), (.set(["n"], [1]), .replace(["n"], [1])),
      (.transaction([.increment(["n"], by: 1)]), .transaction([.increment(["n"], by: 2)])),
      (.transaction([]), .transaction([.increment(["n"], by: 2)])),
    ] as [(DocumentAction, DocumentAction)] {
      let foresight = try #require(feature.foresee(first, in: ground))
      let (result, holds) = perform(second, on: ground, knowing: foresight)
      #expect(holds && result == perform(second, on: ground).result)
    }
  }
}
