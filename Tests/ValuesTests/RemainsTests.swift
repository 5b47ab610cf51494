import Testing
import Values

@Suite struct RemainsTests {
  @Test("whether a value holds more than so many values")
  func counting() {
    let cases: [(value: Value, count: Int)] = [
      (nil, 1), ("text", 1), ([], 1), ([:], 1), ([1, 2], 3), (["a": 1, "b": [1, [2]]], 6),
      (.array(TreeArray((0..<500).map { .integer($0) })), 501),
      (.object(TrieMap(uniqueKeysWithValues: (0..<500).map { ("\($0)", [.integer($0)]) })), 1001),
    ]
    for (value, count) in cases {
      for limit in [0, 1, count - 1, count, count + 1, 2 * count] {
        var left = limit
        #expect(value.holdsMore(than: &left) == (count > limit), "\(count) values, \(limit)")
      }
    }
  }

  @Test("remains are taken once, and kept only for an owner who takes them")
  func taking() {
    var (kept, none) = (Remains(), Remains(areKept: false))
    kept.add([1])
    none.add([1])
    #expect(!kept.isEmpty && none.isEmpty)
    var more = Remains()
    more.add([2])
    kept.add(more)
    none.add(more)
    #expect(!kept.take().isEmpty && kept.isEmpty && none.isEmpty)
    kept.add([3])
    #expect(!kept.isEmpty)
  }
}
