import Access
import CBOR
import Testing
import Values

/// The law of filters, with random states, patches and views.
@Suite struct ViewFilterLawTests {
  @Test func `a filter shows what the patterns permit, and nothing else`() throws {
    var random = RandomViews(seed: 1)
    var parts = 0
    for _ in 0..<1500 {
      let (value, path) = (random.value(), random.path())
      let (grants, denials) = random.patterns()
      let filter = View(granting: grants, denying: denials).filter(at: path) ?? .nothing
      let part = value.part(at: path)
      let expected = shown(part, at: path, granting: grants, denying: denials)
      let result = try filter.shown(part)
      #expect(result == expected, "\(grants) without \(denials) at \(path) of \(value)")
      if result != part && result != nil { parts += 1 }
    }
    #expect(parts > 150)
  }

  @Test func `the filtered patch of a change is a patch of the filtered value`() throws {
    var random = RandomViews(seed: 2)
    var outcomes: [ViewFilter.Outcome: Int] = [:]
    for _ in 0..<2000 {
      let before = random.value()
      let after = random.changed(before)
      let path = random.path()
      let (grants, denials) = random.patterns()
      let filter = View(granting: grants, denying: denials).filter(at: path) ?? .nothing
      let patch = random.patch(from: before, to: after)
      try #require(try applied(patch, to: before)?.sorted == after.sorted)
      outcomes[try check(filter, patch, before, after, at: path), default: 0] += 1
    }
    for outcome in [ViewFilter.Outcome.untouched, .patch, .absent, .resync] {
      #expect(outcomes[outcome, default: 0] > 20, "\(outcomes)")
    }
  }

  /// Checks the law for one patch of the root and one scope. Also checks that the result contains
  /// no text that the client could see neither before nor after.
  private func check(
    _ filter: ViewFilter, _ patch: CBORItem, _ before: CBORItem, _ after: CBORItem, at path: Path
  ) throws -> ViewFilter.Outcome {
    let bytes = patch.bytes
    var encoder = CBOREncoder()
    let outcome = bytes.withUnsafeBytes {
      filter.filter(path.projection(of: $0), of: $0, into: &encoder)
    }
    let old = try filter.shown(before.part(at: path))
    let new = try filter.shown(after.part(at: path))
    var comment: Comment { "\(patch) of \(before) at \(path)" }
    switch outcome {
    case .untouched: #expect(old?.sorted == new?.sorted, comment)
    case .absent: #expect(new == nil, comment)
    case .resync: break
    case .patch:
      let filtered = try CBORItem(encoder.bytes)
      #expect(try applied(filtered, to: old)?.sorted == new?.sorted, comment)
      let visible = (old?.texts ?? []).union(new?.texts ?? [])
      #expect(filtered.texts.isSubset(of: visible), comment)
    }
    #expect(encoder.bytes.isEmpty == (outcome != .patch))
    return outcome
  }

  @Test func `a view of everything changes no byte, and a view of nothing passes none`() {
    var random = RandomViews(seed: 3)
    for _ in 0..<200 {
      let before = random.value()
      let patch = random.patch(from: before, to: random.changed(before)).bytes
      #expect(ViewFilter.everything.outcome(of: patch) == (.patch, patch))
      #expect(ViewFilter.nothing.outcome(of: patch) == (.untouched, []))
      var encoder = CBOREncoder()
      let bytes = before.bytes
      #expect(bytes.withUnsafeBytes { ViewFilter.everything.filter(value: $0, into: &encoder) })
      #expect(encoder.bytes == bytes)
      #expect(!bytes.withUnsafeBytes { ViewFilter.nothing.filter(value: $0, into: &encoder) })
      #expect(encoder.bytes == bytes)
    }
  }

  @Test func `equal permissions make equal views, however they are written`() {
    var random = RandomViews(seed: 4)
    var equal = 0
    for _ in 0..<1500 {
      let (grants, denials) = random.patterns()
      let (otherGrants, otherDenials) = random.patterns()
      let view = View(granting: grants, denying: denials)
      // The same view with redundant patterns: places already granted, and places denied anyway.
      let padded = View(
        granting: grants.reversed()
          + grants.map { PathPattern($0.steps + [.key("more")]) } + denials,
        denying: denials + denials.map { PathPattern($0.steps + [.any]) })
      #expect(view == padded && view.hashValue == padded.hashValue, "\(grants) and \(denials)")
      // Of the other views, only those that show the same of every value are equal.
      let other = View(granting: otherGrants, denying: otherDenials)
      guard view == other else { continue }
      equal += 1
      for _ in 0..<5 {
        let value = random.value()
        #expect(
          shown(value, at: .root, granting: grants, denying: denials)
            == shown(value, at: .root, granting: otherGrants, denying: otherDenials))
      }
    }
    #expect(equal > 50)
  }

  @Test func `a path is permitted when every value at it would be shown whole`() {
    var random = RandomViews(seed: 5)
    for _ in 0..<1500 {
      let (grants, denials) = random.patterns()
      let view = View(granting: grants, denying: denials)
      let path = random.path()
      #expect(view.permits(path) == (view.filter(at: path)?.isEverything == true))
      let isGranted = grants.contains { $0.covers(path) }
      let isDenied = denials.contains { denial in
        denial.covers(path)
          || PathPattern(Array(denial.steps.prefix(path.keys.count))).covers(path)
      }
      // A grant of every key below a place does not grant the place.
      #expect(view.permits(path) == (isGranted && !isDenied), "\(grants), \(denials) at \(path)")
    }
  }

  // MARK: Bad bytes

  @Test func `malformed patches and values give an item or nothing, and never crash`() throws {
    var random = RandomViews(seed: 6)
    for round in 0..<2000 {
      let before = random.value()
      var bytes =
        round.isMultiple(of: 2)
        ? random.patch(from: before, to: random.changed(before)).bytes : before.bytes
      for _ in 0..<(1 + random.below(3)) {
        switch random.below(3) {
        case 0: bytes[random.below(bytes.count)] = UInt8(random.below(256))
        case 1: bytes.removeLast(min(bytes.count - 1, random.below(4)))
        default: bytes.insert(UInt8(random.below(256)), at: random.below(bytes.count))
        }
      }
      let (grants, denials) = random.patterns()
      let filter = View(granting: grants, denying: denials).filter(at: .root) ?? .nothing
      let (outcome, filtered) = filter.outcome(of: bytes)
      if outcome == .patch { _ = try CBORItem(filtered) }
      var encoder = CBOREncoder()
      if bytes.withUnsafeBytes({ filter.filter(value: $0, into: &encoder) }) {
        _ = try CBORItem(encoder.bytes)
      }
      bytes.withUnsafeBytes {
        _ = try? Digest(ofValueForm: $0, seed: HashSeed(1))
      }
    }
  }

  @Test func `nesting is bounded`() throws {
    // {"a": {"a": {"a": …
    let deep: [UInt8] = Array(repeatElement([0xa1, 0x61, 0x61], count: 100_000).joined()) + [1]
    for filter in [
      ViewFilter.everything, .nothing,
      try #require(View(granting: patterns(["*/*/*/b"])).filter(at: .root)),
    ] {
      #expect(filter.outcome(of: deep) == (.resync, []))
      var encoder = CBOREncoder()
      #expect(!deep.withUnsafeBytes { filter.filter(value: $0, into: &encoder) })
      #expect(throws: CBORError.self) {
        try deep.withUnsafeBytes { _ = try Digest(ofValueForm: $0, seed: HashSeed(1)) }
      }
    }
  }
}

/// The same law for a typed state, with integer keys, structs, optionals and cases.
@Suite struct TypedViewTests {
  private func follow(
    _ grants: [String], _ denials: [String], in schema: Schema?, seed: UInt64
  ) throws -> [ViewFilter.Outcome: Int] {
    var random = SplitMix64(seed)
    var state = First.State()
    let view = View(granting: patterns(grants), denying: patterns(denials))
    let filter = try #require(view.filter(at: .root, in: schema))
    var outcomes: [ViewFilter.Outcome: Int] = [:]
    for _ in 0..<150 {
      let before = state
      for _ in 0...(random.next() % 3) { TranslationTests.write(&state, &random) }
      var encoder = CBOREncoder()
      guard state.encodeDifference(from: before, into: &encoder) else { continue }
      let (outcome, patch) = filter.outcome(of: encoder.bytes)
      outcomes[outcome, default: 0] += 1
      let old = try filter.shown(CBORItem(encoded { before.encode(into: &$0) }))
      let new = try filter.shown(CBORItem(encoded { state.encode(into: &$0) }))
      switch outcome {
      case .untouched: #expect(old?.sorted == new?.sorted)
      case .patch: #expect(try applied(CBORItem(patch), to: old)?.sorted == new?.sorted)
      case .absent, .resync: break
      }
    }
    return outcomes
  }

  static let cases: [(grants: [String], denials: [String])] = [
    (["/"], ["5/*/1"]), (["/"], ["4/*", "5/*/1"]), (["5/*/2"], []), (["5/3", "4/k3", "2"], []),
    (["*"], ["4/*"]), (["4", "5/*"], ["5/7"]), (["3", "1"], []), (["*/*"], []), (["*/*/1"], []),
  ]

  @Test(arguments: cases)
  func `the law holds for structs and maps`(_ grants: [String], _ denials: [String]) throws {
    for seed in 1...2 as ClosedRange<UInt64> {
      let known = try follow(grants, denials, in: TranslationTests.first, seed: seed)
      #expect(known[.resync] == nil, "a schema says that these places are always maps")
      #expect(known[.patch, default: 0] > 10)
      _ = try follow(grants, denials, in: nil, seed: seed)
    }
  }

  @Test
  func `without a schema, a removal may need a resync because the value may have been hidden`()
    throws
  {
    let outcomes = try follow(["/"], ["5/*/1"], in: nil, seed: 1)
    #expect(outcomes[.resync, default: 0] > 0)
  }

  @Test func `a case with values is hidden where anything below it is denied`() throws {
    let schema = TranslationTests.first
    let view = View(granting: [.whole], denying: patterns(["3/1"]))
    let filter = try #require(view.filter(at: .root, in: schema))
    var state = First.State()
    let plain = encoded { state.encode(into: &$0) }
    #expect(try filter.shown(CBORItem(plain))?.part(at: [3]) == .unsigned(0))
    state.filter = .named("secret")
    let named = encoded { state.encode(into: &$0) }
    #expect(try filter.shown(CBORItem(named))?.part(at: [3]) == nil)
    #expect(filter.outcome(of: [0xa1, 3, 0x81, 0x82, 1, 0x61, 0x78]).outcome == .resync)
  }
}
