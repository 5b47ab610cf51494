import Lockstep
import Synchronization
import Testing
import Values

/// Selectors over the rows of an array, which have an order.
@Suite struct OrderedSelectorTests {
  @ObservableState struct Row: Equatable, Identifiable {
    var id: Int
    var value = 0
  }

  private typealias Rows = SyncIdentifiedArray<Row>

  private static func isOdd(_ row: Row) -> Bool { row.value % 2 != 0 }

  @Test(
    "RTK createSelector: a filter keeps the order, whatever is inserted, changed, moved and removed",
    arguments: 0..<20)
  func property(seed: UInt64) {
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    let odd = Selector.filter(\Rows.self) { Self.isOdd($0) }
    let select = odd.remembering()
    var states = [Rows()]
    for _ in 0..<200 {
      // Of any state before: a change, or several, or a state of another lineage.
      var rows = states[below(states.count)]
      for _ in 0..<below(12) {
        let id = below(80)
        switch below(8) {
        case 0: rows.remove(id: id)
        case 1 where !rows.isEmpty: rows.move(id: id, to: below(rows.count))
        case 2: rows.move(id: id, before: below(80))
        case 3: rows.sort { $0.value < $1.value }
        case 4: rows[id: id]?.value += 1
        case 5: rows = Rows(uniqueElements: rows.elements.shuffled(using: &random))
        default: rows.insert(Row(id: id, value: below(5)), at: below(rows.count + 1))
        }
      }
      states.append(rows)
      let selected = select(rows)
      #expect(selected.elements == rows.elements.filter(Self.isOdd))
      #expect(selected == odd(rows))
    }
  }

  @Test("RTK createSelector: over 100,000 rows a move, too, costs what has changed")
  func cost() {
    let calls = Atomic(0)
    let select = Selector.filter(\Rows.self) { row in
      calls.add(1, ordering: .relaxed)
      return row.value > 0
    }.remembering()
    var rows = Rows(uniqueElements: (0..<100_000).map { Row(id: $0, value: $0 % 2) })
    #expect(select(rows).count == 50_000)
    #expect(calls.exchange(0, ordering: .relaxed) == 100_000)
    rows.move(id: 77_777, to: 0)
    rows[id: 50_000]?.value = 1
    rows[id: 50_001]?.value = 0
    rows.remove(id: 1)
    rows.insert(Row(id: -1, value: 3), at: 10)
    let selected = select(rows)
    #expect(selected.ids.prefix(3).elementsEqual([77_777, 3, 5]))
    #expect(selected[id: 50_000] != nil && selected[id: 50_001] == nil && selected[id: -1] != nil)
    #expect(selected.elements == rows.elements.filter { $0.value > 0 })
    #expect(calls.exchange(0, ordering: .relaxed) < 100)
  }
}
