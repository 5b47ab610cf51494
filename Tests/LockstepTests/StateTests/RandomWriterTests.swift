import Lockstep
import Testing

/// Writes a state in every way that Swift permits.
private struct Writer {
  var random: Random
  /// Settled copies, which are moved in later.
  var copies: [Everything] = []

  mutating func todo() -> Todo {
    let texts = ["", "a", "\u{e9}", "e\u{301}", "long enough not to be small"]
    return Todo(
      title: texts[random.below(texts.count)], isDone: random.below(2) == 0,
      tags: SyncArray((0..<random.below(4)).map { "\($0)" }),
      note: random.below(2) == 0 ? nil : "n")
  }

  mutating func screen(_ depth: Int = 2) -> Screen {
    switch random.below(depth > 0 ? 4 : 3) {
    case 0: .none
    case 1: .list(["a": random.below(3), "b": 1])
    case 2: .detail(todo(), random.below(2) == 0 ? nil : .search)
    default: .stack(screen(depth - 1), over: screen(depth - 1))
    }
  }

  mutating func write(_ state: inout Everything) {
    let key = random.below(5)
    let number = random.below(3)
    switch random.below(36) {
    case 0: state.number = number
    case 1: state.maybe = number == 0 ? nil : number
    case 2: change(&state.number)
    case 3: state[keyPath: [\Everything.nested, \.other][number % 2]].count += 1
    case 4: swap(&state.nested, &state.other)
    case 5: (state.nested.todos, state.other.todos) = (state.other.todos, state.nested.todos)
    case 6: state.screen = screen()
    case 7: state.nested.todos[key] = todo()
    case 8: state.nested.todos[key] = nil
    case 9: state.nested.todos[key]?.tags.append("\(number)")
    case 10: state.nested.todos[key, default: Todo()].title += "!"
    case 11: state.other.todos.modifyValue(forKey: key) { $0.isDone.toggle() }
    case 12: state.other = Todos.State(count: number)
    case 13: state.nested.fact = number == 0 ? nil : "f\(number)"
    case 14: state.list.append(number)
    case 15: state.list = (0..<random.below(6)).map { $0 / 2 }
    case 16: if !state.list.isEmpty { state.list[random.below(state.list.count)] = number }
    case 17: state.bytes.append(UInt8(number))
    case 18: state.todos.insert(todo(), at: random.below(state.todos.count + 1))
    case 19: if !state.todos.isEmpty { state.todos[random.below(state.todos.count)] = todo() }
    case 20: if !state.todos.isEmpty { state.todos.remove(at: random.below(state.todos.count)) }
    case 21: state.byTab[number == 0 ? .home : .search] = key == 0 ? nil : todo()
    case 22: if !state.tags.insert("\(key)").inserted { state.tags.remove("\(key)") }
    case 23: state.array.append(todo())
    case 24: if !state.array.isEmpty { state.array[random.below(state.array.count)].title += "x" }
    case 25: state.deep["\(number)", default: [:]][key] = todo()
    case 26: state.deep["\(number)"]?[key]?.tags = ["whole"]
    case 27: state.alert = number == 0 ? nil : "!"
    case 28: if let copy = copies.randomElement(&random) { state = copy }
    case 29: state.cards.insert(card(key), at: random.below(state.cards.count + 1))
    case 30: state.cards.move(id: key, to: random.below(Swift.max(state.cards.count, 1)))
    case 31: state[keyPath: \.cards[id: key]]?.tags.append("\(number)")
    case 32: state.cards.remove(id: key)
    case 33: state.cards = SyncIdentifiedArray((0..<number).map(card)) { first, _ in first }
    case 34: change(&state.cards[id: key], key)
    default:
      // A modified copy that is moved back in, and one that is discarded.
      var copy = state
      copy.nested.todos[key] = todo()
      copy.progress += 0.25
      copy.hide(Double(number))
      if number > 0 { state = copy }
    }
  }

  private func change(_ number: inout Int) { number &+= 1 }

  private func card(_ id: Int) -> Card { Card(id: id, title: "c\(id)", tags: ["\(id)"]) }

  /// Inserts an absent card, and removes a present one.
  private func change(_ slot: inout Card?, _ id: Int) { slot = slot == nil ? card(id) : nil }
}

extension Array {
  fileprivate func randomElement(_ random: inout Random) -> Element? {
    isEmpty ? nil : self[random.below(count)]
  }
}

@Suite struct RandomWriterTests {
  private let paths: [Path] = [
    [], [0], [1], [2], [2, 1], [2, 2], [2, 2, 3], [2, 2, 3, 2], [4], [8], [8, "home"],
    [8, "home", 0], [11], [11, "1"], [11, "1", 2], [11, "1", 2, 0], [13], [99], ["x"], [0, 0],
    [15], [15, 0], [15, 0, 2], [15, 0, 2, 2], [15, 1], [15, 1, 0],
  ]

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `every way to write settles to a patch that updates a mirror`(run: UInt64) throws {
    var writer = Writer(random: Random(run))
    var state = Everything()
    state.adopt(seed: seed)
    var mirror = state
    for round in 0..<250 {
      let old = state
      for _ in 0..<writer.random.below(5) { writer.write(&state) }
      if writer.random.below(6) == 0 {
        state.rollBack(to: old)
        #expect(bytes(state) == bytes(old))
        continue
      }
      var encoder = CBOREncoder()
      let isChanged = state.settle(since: old, seed: seed, into: &encoder)
      let patch = encoder.bytes
      #expect(isChanged == !patch.isEmpty)
      #expect(patch.isEmpty == (bytes(state) == bytes(old)))
      #expect(patch == difference(from: old, to: state))
      if isChanged {
        try apply(patch, to: &mirror)
        mirror.adopt(seed: seed)
        expectScopes(patch, from: old, to: state)
      }
      #expect(bytes(mirror) == bytes(state))
      #expect(mirror.digest(seed: seed) == state.digest(seed: seed))
      if round % 20 == 0 { writer.copies.append(state) }
    }
    #expect(try bytes(decoded(Everything.self, bytes(state))) == bytes(state))
  }

  @Test(
    "TCA-04: a state is a value: changes to a copy stay in the copy, and are in its patch",
    arguments: 1...4 as ClosedRange<UInt64>)
  func copies(run: UInt64) throws {
    var writer = Writer(random: Random(run))
    var state = Everything()
    state.adopt(seed: seed)
    for _ in 0..<150 {
      let start = state
      for _ in 0..<writer.random.below(4) { writer.write(&state) }
      let (before, digest) = (bytes(state), state.digest(seed: seed))
      // The copy shares the state's storage and its notes so far.
      var copy = state
      for _ in 0...writer.random.below(4) { writer.write(&copy) }
      #expect(bytes(state) == before && state.digest(seed: seed) == digest)
      let (other, otherDigest) = (bytes(copy), copy.digest(seed: seed))
      for _ in 0...writer.random.below(4) { writer.write(&state) }
      #expect(bytes(copy) == other && copy.digest(seed: seed) == otherDigest)
      for var value in [copy, state] {
        let whole = bytes(value)
        var (encoder, mirror) = (CBOREncoder(), start)
        if value.settle(since: start, seed: seed, into: &encoder) {
          try apply(encoder.bytes, to: &mirror)
        }
        #expect(bytes(mirror) == whole)
      }
      var ignored = CBOREncoder()
      _ = state.settle(since: start, seed: seed, into: &ignored)
    }
  }

  /// A scope's part of the whole patch equals the scope's own difference.
  private func expectScopes(_ patch: [UInt8], from old: Everything, to new: Everything) {
    for path in paths {
      var scoped = CBOREncoder()
      let isChanged = new.encodeDifference(from: old, at: path, into: &scoped)
      let projection = patch.withUnsafeBytes { path.projection(of: $0) }
      switch projection {
      case .untouched: #expect(!isChanged, "\(path)")
      case .patch(let range): #expect(isChanged && scoped.bytes == Array(patch[range]), "\(path)")
      case .value(let range):
        var value = CBOREncoder()
        new.encode(at: path, into: &value)
        #expect(value.bytes == Array(patch[range]), "\(path)")
      case .absent: #expect(!new.isPresent(at: path), "\(path)")
      }
    }
  }
}
