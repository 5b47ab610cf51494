import Access
import CBOR
import Values

// Random states, patches and views. Every text is a marker: keys contain their level, so that
// patterns match them, and no two text scalars are equal.

struct RandomViews {
  var random: SplitMix64
  private var markers = 0

  init(seed: UInt64) { random = SplitMix64(seed) }

  mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  // MARK: Values

  mutating func scalar() -> CBORItem {
    switch below(8) {
    case 0: return .null
    case 1: return .bool(chance(50))
    case 2: return .unsigned(UInt64(below(3)))
    case 3: return .double(1.5)
    case 4: return .bytes([1])
    default:
      markers += 1
      return .text("<scalar \(markers)>")
    }
  }

  func keyText(_ level: Int, _ number: Int) -> String { "<key \(level).\(number)>" }

  mutating func value(level: Int = 0) -> CBORItem {
    if level > 3 || chance(level == 0 ? 5 : 25) { return scalar() }
    if chance(20) { return .array((0..<below(4)).map { _ in value(level: level + 1) }) }
    var pairs: [CBORItem.Pair] = []
    for number in 0..<6 where chance(50) {
      pairs.append(.init(.text(keyText(level, number)), value(level: level + 1)))
    }
    if chance(2) {
      for number in 10..<40 { pairs.append(.init(.text(keyText(level, number)), scalar())) }
    }
    return .map(pairs)
  }

  /// A value with random changes.
  mutating func changed(_ value: CBORItem, level: Int = 0) -> CBORItem {
    if chance(level == 0 ? 4 : 12) { return self.value(level: level) }
    switch value {
    case .map(let pairs):
      var result: [CBORItem.Pair] = []
      for pair in pairs where !chance(8) {
        result.append(
          chance(60) ? pair : .init(pair.key, changed(pair.value, level: level + 1)))
      }
      for number in 0..<6 where chance(8) {
        let key = CBORItem.text(keyText(level, number))
        if !result.contains(where: { $0.key == key }) {
          result.append(.init(key, self.value(level: level + 1)))
        }
      }
      return .map(result)
    case .array(var items):
      if !items.isEmpty, chance(50) {
        items[below(items.count)] = self.value(level: level + 1)
      } else {
        items.append(self.value(level: level + 1))
      }
      return .array(items)
    default: return value
    }
  }

  // MARK: Patches

  /// A patch from one value to another, in any form that the protocol allows.
  mutating func patch(from old: CBORItem?, to new: CBORItem?, isRoot: Bool = true) -> CBORItem {
    guard let new else { return .undefined }
    guard let old, !chance(15) else { return replacement(new) }
    switch (old, new) {
    case (.map(let before), .map(let after)):
      var edits: [CBORItem.Pair] = []
      for pair in before {
        let now = after.first { $0.key == pair.key }?.value
        if now == pair.value && !chance(5) { continue }
        edits.append(.init(pair.key, patch(from: pair.value, to: now, isRoot: false)))
      }
      for pair in after where !before.contains(where: { $0.key == pair.key }) {
        edits.append(.init(pair.key, replacement(pair.value)))
      }
      return .map(edits)
    case (.array(let before), .array(let after)):
      let shared = min(before.count, after.count)
      let splice: [CBORItem] =
        before.count == after.count
        ? []
        : [
          .unsigned(UInt64(shared)), .unsigned(UInt64(before.count - shared)),
          .array(Array(after[shared...])),
        ]
      var edits: [CBORItem.Pair] = []
      for index in 0..<shared where before[index] != after[index] {
        edits.append(
          .init(
            .unsigned(UInt64(index)),
            patch(from: before[index], to: after[index], isRoot: false)))
      }
      return .array([.array(splice), .map(edits)])
    default: return replacement(new)
    }
  }

  private mutating func replacement(_ value: CBORItem) -> CBORItem {
    switch value {
    case .map, .array: .array([value])
    default: chance(20) ? .array([value]) : value
    }
  }

  // MARK: Views

  mutating func pattern() -> PathPattern {
    PathPattern(
      (0..<below(chance(80) ? 4 : 6)).map { level in
        chance(35) ? .any : .key(.text(keyText(level, below(6))))
      })
  }

  mutating func patterns() -> (grants: [PathPattern], denials: [PathPattern]) {
    var grants = (0..<below(4)).map { _ in pattern() }
    if chance(40) { grants.append(.whole) }
    let denials = (0..<below(5)).map { _ in pattern() }
    return (grants, denials.filter { !$0.steps.isEmpty })
  }

  /// A path at which there may be a value.
  mutating func path() -> Path {
    Path((0..<(chance(60) ? 0 : below(4))).map { .text(keyText($0, below(6))) })
  }
}

extension CBORItem {
  /// The value at a path through maps.
  func part(at path: Path) -> CBORItem? {
    var current = self
    for key in path.keys {
      guard case .map(let pairs) = current,
        let next = pairs.first(where: { $0.key.pathKey == key })?.value
      else { return nil }
      current = next
    }
    return current
  }
}
