public import Lockstep
import Synchronization
import Values

extension UniqueIDGenerator {
  /// Identifiers that count, from 00000000-0000-0000-0000-000000000000.
  public static var counting: UniqueIDGenerator {
    let numbers = Shared<UInt64>(0)
    return UniqueIDGenerator {
      numbers.access { next in
        defer { next += 1 }
        return UniqueID(high: 0, low: next)
      }
    }
  }
}

extension RandomSource {
  /// The random numbers of a seed.
  static func seeded(_ seed: UInt64) -> RandomSource {
    let generator = Shared(SplitMix64(seed))
    return RandomSource { generator.access { $0.next() } }
  }
}

/// A value that closures share.
private final class Shared<Value: Sendable>: Sendable {
  private let value: Mutex<Value>

  init(_ value: Value) { self.value = Mutex(value) }

  func access<R: Sendable>(_ body: (inout Value) -> R) -> R {
    value.withLock { value in
      var copy = value
      defer { value = copy }
      return body(&copy)
    }
  }
}
