import CBOR
import HashTreeCollections
import Values

/// A `SyncMap` of a given size, compared with a `TreeDictionary` of the same entries.
struct MapBenchmark {
  private static let seed = HashSeed(7)

  private let keys: [Int]
  /// The keys of the operations, at random.
  private let picks: [Int]
  private let operations: Int
  private var next = 0
  private var tree = TreeDictionary<Int, Item>()
  private var map = SyncMap<Int, Item>(seed: seed)
  private var trie = TrieMap<Int, Item>(seed: seed)
  private var encoder = CBOREncoder(reservingCapacity: 4096)

  init(entries: Int, operations: Int) {
    var random = SplitMix(state: 42)
    let keys = (0..<entries).shuffled(using: &random)
    self.keys = keys
    self.operations = operations
    let picked = max(16_384, 64 * operations)
    picks = (0..<picked).map { _ in keys[Int.random(in: 0..<entries, using: &random)] }
    for (number, key) in keys.enumerated() {
      tree[key] = Item(number)
      trie.updateValue(Item(number), forKey: key)
      map[key] = Item(number)
    }
    _ = map.settle(into: &encoder)
  }

  mutating func run(rounds: Int, into report: inout Report) {
    let change = runChanges(rounds, &report)
    runLookUps(rounds, &report)
    runCopies(rounds, change, &report)
    for changes in [1, 100, 10_000] { runDifference(changes, max(9, rounds / 64), &report) }
    // A round over a million entries takes seconds.
    let isQuick = rounds < 1_000
    if !isQuick || keys.count <= 100_000 { runWhole(max(1, rounds / 128), &report) }
  }

  /// Returns other keys for every turn.
  private mutating func turn(_ count: Int) -> ArraySlice<Int> {
    if next + count > picks.count { next = 0 }
    defer { next += count }
    return picks[next..<(next + count)]
  }
}

// MARK: - Changes

extension MapBenchmark {
  /// The bounded figures: a change and its patch, relative to a plain change. Returns the time of a
  /// plain change of the trie.
  private mutating func runChanges(_ rounds: Int, _ report: inout Report) -> Double {
    let times = interleaved(
      &self, rounds: rounds,
      [
        { $0.changeTree() }, { $0.changeMap() }, { $0.changeThroughSubscript() },
        { $0.changeTrie() },
      ])
    let size = keys.count
    report.add("TreeDictionary: change", size, times[0])
    report.add("TrieMap: change", size, times[3])
    report.add("SyncMap: change + patch", size, times[1])
    report.add("SyncMap: change by subscript + patch", size, times[2])
    let (patched, subscripted) = (times[1] / times[0], times[2] / times[0])
    report.add("change + patch ÷ TreeDictionary: change", size, patched, .ratio, limit: 1)
    report.add("the same by subscript ÷ the same", size, subscripted, .ratio, limit: 1)
    return times[3]
  }

  private mutating func changeTree() -> Double {
    let keys = turn(operations)
    return nanoseconds(operations) { for key in keys { tree[key]!.count += 1 } }
  }

  private mutating func changeTrie() -> Double {
    let keys = turn(operations)
    return nanoseconds(operations) {
      for key in keys { trie.modifyValue(forKey: key) { $0.count += 1 } }
    }
  }

  private mutating func changeMap() -> Double {
    let keys = turn(operations)
    return nanoseconds(operations) {
      for key in keys {
        encoder.bytes.removeAll(keepingCapacity: true)
        map.modifyValue(forKey: key) { $0.count += 1 }
        _ = map.settle(into: &encoder)
      }
    }
  }

  private mutating func changeThroughSubscript() -> Double {
    let keys = turn(operations)
    return nanoseconds(operations) {
      for key in keys {
        encoder.bytes.removeAll(keepingCapacity: true)
        map[key]?.count += 1
        _ = map.settle(into: &encoder)
      }
    }
  }
}

// MARK: - Look-ups and copies

extension MapBenchmark {
  private mutating func runLookUps(_ rounds: Int, _ report: inout Report) {
    let times = interleaved(&self, rounds: rounds, [{ $0.lookUpTree() }, { $0.lookUpMap() }])
    report.add("TreeDictionary: look-up", keys.count, times[0])
    report.add("SyncMap: look-up", keys.count, times[1])
  }

  private mutating func lookUpTree() -> Double {
    let keys = turn(operations)
    var sum = 0
    let time = nanoseconds(operations) { for key in keys { sum &+= tree[key]?.count ?? 0 } }
    consume(sum)
    return time
  }

  private mutating func lookUpMap() -> Double {
    let keys = turn(operations)
    var sum = 0
    let time = nanoseconds(operations) { for key in keys { sum &+= map[key]?.count ?? 0 } }
    consume(sum)
    return time
  }

  private mutating func runCopies(_ rounds: Int, _ change: Double, _ report: inout Report) {
    let times = interleaved(
      &self, rounds: rounds,
      [
        { $0.copyTree() }, { $0.copyMap() }, { $0.firstWrites { $0.firstWriteToTree($1) } },
        { $0.firstWrites { $0.firstWriteToTrie($1) } },
      ])
    let size = keys.count
    report.add("TreeDictionary: copy + change + release", size, times[0])
    report.add("SyncMap: copy + change + patch + release", size, times[1])
    report.add("TreeDictionary: first write after a copy", size, times[2])
    report.add("TrieMap: first write after a copy", size, times[3])
    report.add(
      "first write after a copy ÷ TrieMap: change", size, times[3] / change, .ratio,
      limit: size == 1_000_000 ? 50 : nil)
  }

  private mutating func copyTree() -> Double {
    let keys = turn(operations / 8)
    return nanoseconds(keys.count) {
      for key in keys {
        let old = tree
        tree[key]!.count += 1
        withExtendedLifetime(old) {}
      }
    }
  }

  private mutating func copyMap() -> Double {
    let keys = turn(operations / 8)
    return nanoseconds(keys.count) {
      for key in keys {
        let old = map
        encoder.bytes.removeAll(keepingCapacity: true)
        map.modifyValue(forKey: key) { $0.count += 1 }
        _ = map.settle(into: &encoder)
        withExtendedLifetime(old) {}
      }
    }
  }

  private mutating func firstWrites(_ write: (inout Self, Int) -> Double) -> Double {
    median(turn(9).map { write(&self, $0) })
  }

  private mutating func firstWriteToTree(_ key: Int) -> Double {
    let old = tree
    defer { withExtendedLifetime(old) {} }
    return nanoseconds(1) { tree[key]!.count += 1 }
  }

  private mutating func firstWriteToTrie(_ key: Int) -> Double {
    let old = trie
    defer { withExtendedLifetime(old) {} }
    return nanoseconds(1) { trie.modifyValue(forKey: key) { $0.count += 1 } }
  }
}

// MARK: - Differences and whole maps

extension MapBenchmark {
  private mutating func runDifference(_ changes: Int, _ rounds: Int, _ report: inout Report) {
    guard changes <= keys.count else { return }
    let times = interleaved(&self, rounds: rounds, [{ $0.difference(of: changes) }])
    report.add("TrieMap: difference of \(changes), for each", keys.count, times[0])
  }

  private mutating func difference(of changes: Int) -> Double {
    let old = trie
    for key in turn(changes) { trie.modifyValue(forKey: key) { $0.count += 1 } }
    encoder.bytes.removeAll(keepingCapacity: true)
    return nanoseconds(changes) { _ = trie.encodeDifference(from: old, into: &encoder) }
  }

  private mutating func runWhole(_ rounds: Int, _ report: inout Report) {
    var longest = Double.infinity
    let times = interleaved(
      &self, rounds: rounds,
      [
        { $0.insertIntoTree() }, { $0.insertIntoMap() }, { $0.encodeWhole() },
        { $0.decodeWhole() },
        {
          // The minimum of several runs: the rest of a pause is caused by the operating system.
          longest = min(longest, $0.longestInsert())
          return longest
        },
      ])
    let size = keys.count
    report.add("TreeDictionary: insert", size, times[0])
    report.add("TrieMap: insert", size, times[1])
    report.add("TrieMap: encode an entry", size, times[2])
    report.add("TrieMap: decode an entry", size, times[3])
    report.add("TrieMap: longest single insert", size, longest)
  }

  private mutating func insertIntoTree() -> Double {
    var new = TreeDictionary<Int, Int>()
    let time = nanoseconds(keys.count) { for key in keys { new[key] = key } }
    consume(new.count)
    return time
  }

  private mutating func insertIntoMap() -> Double {
    var new = TrieMap<Int, Int>(seed: Self.seed)
    let time = nanoseconds(keys.count) { for key in keys { new.updateValue(key, forKey: key) } }
    consume(new.count)
    return time
  }

  private mutating func longestInsert() -> Double {
    var new = TrieMap<Int, Int>(seed: Self.seed)
    var longest = 0.0
    for key in keys {
      longest = max(longest, nanoseconds(1) { new.updateValue(key, forKey: key) })
    }
    return longest
  }

  private mutating func encodeWhole() -> Double {
    encoder.bytes.removeAll(keepingCapacity: true)
    return nanoseconds(keys.count) { trie.encode(into: &encoder) }
  }

  /// Decodes the bytes that `encodeWhole` left in the encoder.
  private mutating func decodeWhole() -> Double {
    let bytes = encoder.bytes
    defer { encoder = CBOREncoder(reservingCapacity: 4096) }
    var decoded: TrieMap<Int, Item>?
    let time = nanoseconds(keys.count) {
      decoded = try? CBORDecoder.read(bytes) { decoder throws(CBORError) in
        try TrieMap(from: &decoder, seed: Self.seed)
      }
    }
    precondition(decoded == trie, "A map must decode to what was encoded.")
    return time
  }
}
