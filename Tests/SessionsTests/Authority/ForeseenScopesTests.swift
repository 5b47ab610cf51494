import Access
import CBOR
import Documents
import Testing
import Values
import Wire

@testable import DaemonCore

/// How a patch changes many scopes: found in one pass, and beside the loop, with the same result as for
/// each of them alone.
@Suite struct ForeseenScopesTests {
  @Test(arguments: [false, true])
  func `one pass over a patch finds for each scope what its own path finds`(isNumbered: Bool) {
    var random = RandomViews(seed: 11)
    var kinds: [String: Int] = [:]
    for _ in 0..<1500 {
      var tree = ScopeTree()
      var paths: [UInt64: Path] = [:]
      var present = Set<UInt64>()
      for id in 0..<UInt64(1 + random.below(30)) {
        let path = isNumbered ? Path(random.path().keys.map(numbered)) : random.path()
        paths[id] = path
        if random.chance(50) { present.insert(id) }
        tree.insert(id, at: path.keys[...], isPresent: present.contains(id))
      }
      for id in paths.keys.sorted() where random.chance(20) {
        tree.remove(id, at: paths[id]?.keys[...] ?? [], wasPresent: present.contains(id))
        paths[id] = nil
      }
      for id in paths.keys.sorted() where random.chance(20) {
        let isPresent = present.remove(id) == nil
        if isPresent { present.insert(id) }
        tree.note(isPresent: isPresent, at: paths[id]?.keys[...] ?? [])
      }
      let before = random.value()
      let made = random.patch(from: before, to: random.changed(before))
      let patch = (isNumbered ? numbered(made) : made).bytes
      patch.withUnsafeBytes { bytes in
        var found: [UInt64: Projection] = [:]
        for (id, projection) in changed(bytes, tree).changes {
          #expect(found.updateValue(projection, forKey: id) == nil, "once")
        }
        let expected = paths.mapValues { $0.projection(of: bytes) }.filter {
          $0.value != .untouched && ($0.value != .absent || present.contains($0.key))
        }
        // All scopes of a path are visited if one has a value: each of them knows whether it has.
        found = found.filter { $0.value != .absent || present.contains($0.key) }
        #expect(found == expected, "\(patch)")
        for kind in found.values { kinds[String("\(kind)".prefix { $0 != "(" }), default: 0] += 1 }
      }
    }
    for kind in ["patch", "value", "absent"] { #expect(kinds[kind, default: 0] > 100, "\(kinds)") }
  }

  /// How many scopes and keys a patch makes a tree look at, in which these are below "x".
  private func looked(_ patch: CBORItem, _ tree: ScopeTree) -> Int {
    patch.bytes.withUnsafeBytes { changed($0, tree).looked }
  }

  private func changed(_ patch: UnsafeRawBufferPointer, _ tree: ScopeTree) -> ChangedScopes {
    var found = ChangedScopes()
    tree.find(patch, into: &found)
    return found
  }

  @Test func `scopes without a value are not looked at when there is none above them`() {
    var tree = ScopeTree()
    tree.insert(0, at: [.text("x")], isPresent: true)
    for id in 1..<3000 as Range<UInt64> {
      tree.insert(id, at: [.text("x"), .text("k\(id)")], isPresent: false)
    }
    let number = CBORItem.map([.init(.text("x"), .unsigned(5))])
    let value = CBORItem.map([.init(.text("k1"), .unsigned(5))])
    let whole = CBORItem.map([.init(.text("x"), .array([value]))])
    let absent = CBORItem.map([.init(.text("x"), .undefined)])
    #expect([number, whole, absent].map { looked($0, tree) } == [1, 2, 1])
    // One of them has a value, and then it is found, and it alone.
    tree.note(isPresent: true, at: [.text("x"), .text("k2999")])
    for patch in [number, whole, absent] {
      #expect(looked(patch, tree) <= 4)
      var found: [UInt64: Projection] = [:]
      patch.bytes.withUnsafeBytes { bytes in
        for (id, projection) in changed(bytes, tree).changes { found[id] = projection }
      }
      #expect(found[2999] == .absent && found.count <= 3, "\(found)")
    }
    #expect(looked(.map([.init(.text("other"), .unsigned(5))]), tree) == 0)
  }

  @Test func `a copy of a tree of many keys does not change with it`() {
    var tree = ScopeTree()
    let ids = 0..<3000 as Range<UInt64>
    for id in ids { tree.insert(id, at: [.text("k\(id)")], isPresent: true) }
    let copy = tree
    for id in ids where id % 3 != 0 { tree.remove(id, at: [.text("k\(id)")], wasPresent: true) }
    func found(_ tree: ScopeTree) -> [UInt64] {
      var found: [UInt64] = []
      CBORItem.array([.unsigned(1)]).bytes.withUnsafeBytes { bytes in
        for (id, projection) in changed(bytes, tree).changes {
          #expect(projection == .absent)
          found.append(id)
        }
      }
      return found.sorted()
    }
    #expect(found(copy) == Array(ids))
    #expect(found(tree) == ids.filter { $0 % 3 == 0 })
    for id in ids where id % 3 == 0 { tree.remove(id, at: [.text("k\(id)")], wasPresent: true) }
    #expect(found(tree) == [])
  }

  /// The same with numbers for keys, of every length that they have.
  private func numbered(_ item: CBORItem) -> CBORItem {
    switch item {
    case .map(let pairs):
      return .map(
        pairs.map { pair in
          guard case .integer(let number) = numbered(pair.key.pathKey) else {
            return .init(pair.key, numbered(pair.value))
          }
          let key = number < 0 ? CBORItem.negative(UInt64(~number)) : .unsigned(UInt64(number))
          return .init(key, numbered(pair.value))
        })
    case .array(let items): return .array(items.map(numbered))
    default: return item
    }
  }

  private func numbered(_ key: PathKey) -> PathKey {
    guard case .text(let text) = key, let last = text.split(separator: ".").last,
      last.count == 2, let number = last.first?.wholeNumberValue
    else { return key }
    return .integer([0, 23, 24, -300, 70_000, 1 << 40, -1, 5, 6, 7][number])
  }

  /// Scopes with these views, and what they would send.
  private struct Seen: Equatable {
    let id: UInt64
    let lastChange: UInt64
    let isPresent: Bool
    let wholeBytes: Int?
    let snapshotBytes: Int?
    let bytes: [UInt8]
    let count: UInt64
    let loss: ServerMessage.Reason?

    init(_ scope: Scope) {
      var scope = scope
      scope.cut()
      (id, lastChange, isPresent) = (scope.id, scope.lastChange, scope.isPresent)
      (wholeBytes, snapshotBytes) = (scope.wholeBytes, scope.snapshotBytes)
      bytes = Array(scope.turn.frames.joined())
      (count, loss) = (scope.turn.count, scope.turn.loss)
    }
  }

  @Test func `what is foreseen of a patch is sent as it would be without that`() {
    let (different, shared) = outcomes { _ in }
    #expect(different == 0 && shared > 50, "\(shared)")
  }

  @Test func `it would be noticed`() {
    #expect(outcomes { $0.next = .max }.different > 50)
    #expect(outcomes { $0.filters = $0.filters.mapValues { _ in .everything } }.different > 50)
  }

  /// In how many rounds something else is sent than without foresight, and how many frames are in two
  /// pieces.
  private func outcomes(
    _ change: (inout ScopeViews) -> Void
  ) -> (different: Int, shared: Int) {
    var random = RandomViews(seed: 12)
    var (different, shared) = (0, 0)
    for round in 0..<1000 {
      var limits = Limits()
      limits.patchFrameBytes = 1 + random.below(200)
      // Some do not fit a frame.
      if round % 10 == 0 { limits.frameBytes = 200 }
      var table = ScopeTable()
      func add() {
        let (grants, denials) = random.patterns()
        let (path, isAll) = (random.path(), random.chance(50))
        let filter = isAll ? nil : View(granting: grants, denying: denials).filter(at: path)
        guard isAll || filter != nil, table.index(of: path, by: filter) == nil else { return }
        let index = table.add(path, by: filter, lastChange: 3, isPresent: random.chance(50))
        table[index: index].wholeBytes = random.chance(50) ? 100 : nil
        table[index: index].snapshotBytes = random.chance(50) ? 50 : nil
        // The first one, and so of seat 0.
        _ = table[index: index].subscribers.append(.init(id: ConnectionID(1), place: 0), slot: 0)
      }
      for _ in 0..<10 { add() }
      let before = random.value()
      let patch = random.patch(from: before, to: random.changed(before)).bytes
      var views = table.views(FrameLimits(limits))
      change(&views)
      let foreseen = ForeseenScopes(views, of: patch)
      // Meanwhile some go, and others come.
      for scope in table.scopes where random.chance(10) {
        table.remove(Subscription(number: 1, scope: scope.id, progress: .live))
      }
      for _ in 0..<3 { add() }
      var plain = table
      plain.note(patch, revision: 5, limits: FrameLimits(limits))
      table.note(patch, foreseen, revision: 5, limits: FrameLimits(limits))
      plain.findChangedPlaces()
      table.findChangedPlaces()
      let isSame =
        table.scopes.map(Seen.init) == plain.scopes.map(Seen.init)
        && table.changedPlaces == plain.changedPlaces
      if !isSame { different += 1 }
      shared += table.scopes.count { $0.turn.frames.count == 2 }
    }
    return (different, shared)
  }

  @Test func `clients are sent the same of a large action, whether or not it was foreseen`() {
    let (foreseen, plain) = (frames(isForeseen: true), frames(isForeseen: false))
    let patches = { (frames: [[UInt8]]) in
      serverMessages(Array(frames.joined())).filter { if case .patch = $0 { true } else { false } }
    }
    #expect(patches(foreseen.writer).count == 5 && patches(foreseen.other).count == 5)
    #expect(patches(foreseen.writer) == patches(plain.writer))
    #expect(patches(foreseen.other) == patches(plain.other))
    let bytes = foreseen.other.joined()
    #expect(!String(decoding: Array(bytes), as: UTF8.self).contains("<secret>"))
    // The large ones that are foreseen are sent without being copied, behind the head of a frame.
    #expect(foreseen.writer.count == plain.writer.count + 3)
  }

  /// The frames for a client that writes a large map, and for another that may see only a part of it.
  private func frames(isForeseen: Bool) -> (writer: [[UInt8]], other: [[UInt8]]) {
    let policy = Policy([
      Rule(users: [7], mayConnect: true, read: [.whole], act: [.all]),
      Rule(
        users: [8], mayConnect: true, read: [.whole],
        denyRead: [PathPattern([.key("map"), .key("secret")])]),
    ])
    var limits = Limits()
    limits.largeActionBytes = 200
    limits.patchFrameBytes = 100
    var bench = Bench(["map": ["old": 1]], limits: limits, policy: policy)
    let paths: [Path] = [
      .root, ["map"], ["map", "a"], ["map", "secret"], ["map", "old"], ["other"],
    ]
    for (number, uid) in [(1, 7), (2, 8)] as [(UInt64, UInt64)] {
      bench.join(number, uid: uid)
      for (index, path) in paths.enumerated() {
        bench.say(number, .subscribe(subscription: UInt64(index), path, nil))
      }
      _ = bench.settle()
    }
    let text = Value.text(String(repeating: "x", count: 300))
    bench.act(1, 1, .set(["map"], ["a": text, "secret": .text("<secret>"), "b": text]))
    _ = bench.handle(.turnEnded)
    let decoded = bench.server.action(for: ConnectionID(1))?.decoded()
    #expect(decoded?.isForeseen == true)
    // A scope comes when it has been foreseen.
    bench.say(2, .subscribe(subscription: 9, ["map", "b"], nil))
    _ = bench.settle()
    let commands =
      bench.handle(.actionDecoded(ConnectionID(1), isForeseen ? decoded : nil))
      + bench.handle(.turnEnded)
    return (bench.frames(to: 1, commands), bench.frames(to: 2, commands))
  }
}
