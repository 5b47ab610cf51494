import CBOR
import Testing

@testable import Values

@Suite struct IdentifiedLabelTests {
  /// Inserts elements at positions that a closure chooses, and returns how many labels of other
  /// elements changed.
  private func insert(
    _ count: Int, into array: inout Cards<Int>, _ position: (Int) -> Int
  ) -> Int {
    var changed = 0
    for number in 0..<count {
      let before = array.labels
      let index = position(array.count)
      array.insert(Card(10_000 + number), at: index)
      var after = array.labels
      after.remove(at: index)
      changed += zip(before, after).count { $0 != $1 }
    }
    return changed
  }

  @Test(arguments: ["front", "end", "middle", "second", "behind the last"])
  func `insertions at one position change few labels`(position: String) {
    var array = Cards(uniqueElements: (0..<1_000).map { Card($0) })
    var last = 500
    let changed = insert(150, into: &array) { count in
      switch position {
      case "front": return 0
      case "end": return count
      case "middle": return count / 2
      case "second": return 1
      default:
        last += 1
        return last
      }
    }
    #expect(array.isSound)
    #expect(array.index(id: 10_100).map { array[$0].id } == 10_100)
    // The ends have room; elsewhere, at most log2(1,000) labels for an insertion.
    let isEnd = position == "front" || position == "end"
    #expect(isEnd ? changed == 0 : (1...1_500).contains(changed))
  }

  @Test func `labels that used up their range are spread over all others`() {
    var array = Cards(uniqueElements: (0..<40).map { Card($0) })
    // The least room that there can be: adjacent labels, at both ends of their range.
    for edge in [1, UInt64.max - 41] {
      array.setLabels(of: 0..<40, from: edge, by: 1)
      #expect(array.isSound)
      let ids = array.ids
      array.insert(Card(1_000 + Int(edge % 7)), at: 20)
      array.insert(Card(2_000 + Int(edge % 7)), at: 0)
      array.append(Card(3_000 + Int(edge % 7)))
      #expect(array.isSound)
      array.removeAll { $0.id >= 1_000 }
      #expect(array.ids == ids)
    }
  }

  @Test func `an id is found by its label, however the labels are spread`() {
    var array = Cards(uniqueElements: (0..<3_000).map { Card($0) })
    var random = SplitMix64(5)
    // Evenly, by powers of two in runs, and at random.
    let spreads: [[UInt64]] = [
      (0..<3_000).map { UInt64($0) + 1 },
      (0..<3_000).map { UInt64($0 % 50 + 1) << 40 | UInt64($0 / 50) }.sorted(),
      (0..<3_000).map { $0 < 60 ? 1 << UInt64($0) : 1 << 60 + UInt64($0) },
      Set((0..<9_000).map { _ in random.next() >> 1 | 1 }).sorted().prefix(3_000).map { $0 },
    ]
    for labels in spreads {
      for (id, label) in labels.enumerated() { array.setLabel(of: id, label) }
      #expect(array.isSound)
      #expect((0..<3_000).allSatisfy { array.index(id: $0) == $0 })
    }
  }

  @Test func `a run of labels stays between its bounds`() {
    for (below, above) in [(nil, nil), (5, nil), (nil, 5), (1, 7), (UInt64.max - 3, nil)]
      as [(
        UInt64?, UInt64?
      )]
    {
      for count in 1...9 {
        guard let run = OrderLabel.run(of: count, between: below, and: above) else {
          let room = (above ?? .max) - (below ?? 0) - 1
          #expect(room < UInt64(count))
          continue
        }
        let labels = (0..<UInt64(count)).map { run.start + $0 * run.step }
        #expect(zip(labels, labels.dropFirst()).allSatisfy { $0 < $1 })
        #expect(labels[0] > below ?? 0 && labels[count - 1] < above ?? .max)
      }
    }
  }
}
