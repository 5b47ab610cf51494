import Documents
import Values

// Random values, paths and actions, with few names and small arrays so that paths collide often.

extension SeededGenerator {
  mutating func scalar() -> Value {
    switch below(9) {
    case 0: .null
    case 1: .bool(chance(50))
    case 2: .integer(Int64(below(5)))
    case 3: .integer(Int64.max - Int64(below(2)))
    case 4: Value(UInt64.max - UInt64(below(2)))
    case 5: .double([0.0, -0.0, 1.0, 1.5, 1e300, .nan][below(6)])
    case 6: .text(["", "a", "é", "e\u{301}", "a longer text than fifteen bytes"][below(5)])
    case 7: .bytes(Array(repeating: 7, count: below(3)))
    default: .integer(Int64(below(1000)) - 500)
    }
  }

  mutating func value(depth: Int) -> Value {
    if depth == 0 || chance(35) { return scalar() }
    if chance(50) {
      var entries = TrieMap<String, Value>()
      for _ in 0..<(chance(5) ? 60 : below(5)) {
        entries.updateValue(value(depth: depth - 1), forKey: name())
      }
      return .object(entries)
    }
    let count = chance(5) ? 80 : below(6)
    var elements: [Value] = []
    for _ in 0..<count { elements.append(value(depth: depth - 1)) }
    return .array(TreeArray(elements))
  }

  mutating func name() -> String {
    if chance(80) { return ["a", "b", "c", "d"][below(4)] }
    return ["", "0", "-", "é", "e\u{301}", "k\(below(99))"][below(6)]
  }

  /// A path that mostly leads somewhere in `root`.
  mutating func path(in root: Value) -> Path {
    var keys: [PathKey] = []
    var current = root
    while chance(80) {
      let key: PathKey
      switch current {
      case .object(let entries):
        if !entries.isEmpty, chance(85) {
          key = .text(Array(entries.keys)[below(entries.count)])
        } else {
          key = .text(name())
        }
      case .array(let elements):
        let index = below(elements.count + (chance(20) ? 2 : 1))
        key = chance(10) ? .text("-") : chance(50) ? .integer(Int64(index)) : .text("\(index)")
      default:
        if chance(90) { return Path(keys) }
        key = chance(50) ? .text(name()) : .integer(Int64(below(3)) - 1)
      }
      keys.append(key)
      guard let next = current.child(key) else { break }
      current = next
    }
    return Path(keys)
  }

  mutating func action(in root: Value, depth: Int = 2) -> DocumentAction {
    let place = path(in: root)
    switch below(depth > 0 ? 13 : 11) {
    case 0: return .set(place, value(depth: 2))
    case 1: return .merge(place, value(depth: 3))
    case 2: return .remove(place)
    case 3, 4: return .increment(place, by: chance(80) ? .integer(Int64(below(3))) : scalar())
    case 5: return .append(place, value(depth: 1))
    case 6: return .insert(place, value(depth: 2))
    case 7: return .move(from: place, to: path(in: root))
    case 8: return .copy(from: place, to: path(in: root))
    case 9: return .test(place, chance(70) ? root.value(at: place) ?? .null : scalar())
    case 10: return .replace(place, value(depth: 2))
    default:
      var actions: [DocumentAction] = []
      for _ in 0..<below(6) { actions.append(action(in: root, depth: depth - 1)) }
      return .transaction(actions)
    }
  }
}
