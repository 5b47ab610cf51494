package import Documents
package import Values

/// Random actions on a document with objects, arrays, text and numbers of every kind. Some of them
/// are rejected, because their operand is gone.
package struct RandomChanges {
  private var random: SplitMix64

  package init(seed: UInt64) { random = SplitMix64(seed) }

  /// The document that they need at the start.
  package static let beginning: Value = [
    "objects": [:], "lists": [:], "counts": [:],
  ]

  package mutating func next() -> DocumentAction {
    switch Int.random(in: 0..<14, using: &random) {
    case 0: .set(object(), value(depth: 2))
    case 1: .set(member(), scalar())
    case 2: .merge(object(), ["merged": scalar(), "a": .null, "z/~": value(depth: 1)])
    case 3: .increment(path("counts", "c\(number(5))"), by: .integer(Int64(number(1000)) - 500))
    case 4, 5: .append(list(), value(depth: 1))
    case 6: .insert(element(), scalar())
    case 7: .remove(element())
    case 8: .set(element(), value(depth: 1))
    case 9: .remove(object())
    case 10: .move(from: element(), to: element())
    case 11: .copy(from: object(), to: object())
    case 12: .set(list(), [.integer(1), .text("two"), .array([])])
    default: .transaction([.append(list(), scalar()), .set(member(), scalar())])
    }
  }

  private mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  private func path(_ keys: String...) -> Path { Path(keys.map { .text($0) }) }

  private mutating func object() -> Path { path("objects", "o\(number(6))") }

  private mutating func member() -> Path {
    path("objects", "o\(number(6))", ["a", "é", "e\u{301}", "", "z/~"][number(5)])
  }

  private mutating func list() -> Path { path("lists", "l\(number(3))") }

  private mutating func element() -> Path { path("lists", "l\(number(3))", "\(number(8))") }

  private mutating func value(depth: Int) -> Value {
    switch depth == 0 ? 0 : number(3) {
    case 1: [.text("first"), scalar(), value(depth: depth - 1)]
    case 2: ["a": scalar(), "deep": value(depth: depth - 1), "日本": scalar()]
    default: scalar()
    }
  }

  private mutating func scalar() -> Value {
    switch number(14) {
    case 0: .null
    case 1: .bool(true)
    case 2: .bool(false)
    case 3: .integer(.min)
    case 4: .integer(.max)
    case 5: Value(UInt64.max)
    case 6: .double(-0.0)
    case 7: .double(Double(number(1_000_000)) / 7)
    case 8: .double(1e300)
    case 9: .text("naïve 👩‍🚀 \(number(100))")
    case 10: .text(["", "é", "e\u{301}", "\u{0}\u{1f}\"\\"][number(4)])
    case 11: .bytes((0..<number(6)).map { UInt8($0 * 40) })
    case 12: .double(Double(number(10)))
    default: .integer(Int64(number(1_000_000)) - 500_000)
    }
  }
}
