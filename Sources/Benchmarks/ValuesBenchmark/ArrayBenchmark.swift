import CBOR
import Values

/// A `SyncArray` of a given length.
struct ArrayBenchmark {
  private let operations: Int
  private var array: SyncArray<Item>
  private var plain: [Item]
  private var encoder = CBOREncoder(reservingCapacity: 4096)

  init(entries: Int, operations: Int) {
    self.operations = operations
    plain = (0..<entries).map { Item($0) }
    array = SyncArray(plain)
    array.adopt(seed: HashSeed(7))
  }

  mutating func run(rounds: Int, into report: inout Report) {
    let size = array.count
    let times = interleaved(
      &self, rounds: rounds, [{ $0.insertIntoArray() }, { $0.insert() }, { $0.change() }])
    report.add("Array: middle insert", size, times[0])
    report.add("SyncArray: middle insert + patch", size, times[1])
    report.add("SyncArray: change + patch", size, times[2])
  }

  private mutating func insertIntoArray() -> Double {
    let time = nanoseconds(8) {
      for number in 0..<8 { plain.insert(Item(number), at: plain.count / 2) }
    }
    plain.removeSubrange((plain.count / 2 - 8)..<(plain.count / 2))
    return time
  }

  /// Inserts and, outside of the measured time, removes again.
  private mutating func insert() -> Double {
    let middle = array.count / 2
    let time = nanoseconds(operations) {
      for number in 0..<operations {
        encoder.bytes.removeAll(keepingCapacity: true)
        array.insert(Item(number), at: array.count / 2)
        _ = array.settle(into: &encoder)
      }
    }
    array.removeSubrange(middle - operations / 2..<middle + operations - operations / 2)
    _ = array.settle(into: &encoder)
    return time
  }

  private mutating func change() -> Double {
    nanoseconds(operations) {
      for number in 0..<operations {
        encoder.bytes.removeAll(keepingCapacity: true)
        array.modifyElement(at: number * 7919 % array.count) { $0.count += 1 }
        _ = array.settle(into: &encoder)
      }
    }
  }
}
