import CBOR
import Lockstep
import Values

/// Counts its actions in a storage that is copied, when it is shared, before it is changed; and
/// counts these copies.
struct Counted: Reducer {
  private final class Storage: Sendable {
    let count: Int

    init(_ count: Int) { self.count = count }
  }

  struct State: Journaled {
    private var storage = Storage(0)
    private(set) var copies = 0

    var count: Int { storage.count }

    mutating func increment() {
      if !isKnownUniquelyReferenced(&storage) { copies += 1 }
      storage = Storage(storage.count + 1)
    }

    func isSame(as other: State) -> Bool { count == other.count }
    func encode(into encoder: inout CBOREncoder) { encoder.encode(count) }
    init() {}
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      throw CBORError(.notAllowed("a type of the tests"), at: decoder.offset)
    }
    func encodeDifference(from old: State, into encoder: inout CBOREncoder) -> Bool {
      if isSame(as: old) { return false }
      encoder.encode(count)
      return true
    }
    mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      self = try State(from: &decoder, seed: seed)
    }
    func digest(seed: HashSeed) -> UInt64 { count.digest(seed: seed) }
    mutating func adopt(seed: HashSeed) {}
    mutating func settle(into encoder: inout CBOREncoder) -> Bool {
      encoder.encode(count)
      return true
    }
    mutating func rollBack() {}
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
  }

  typealias Action = Act

  func reduce(into state: inout State, action: Act) -> Effect<Act> {
    state.increment()
    return .none
  }

  /// Looks at the state before every action.
  struct Stage: Middleware {
    let look: @Sendable (State) -> Void

    func before(
      _ action: inout Act, state: State, context: inout MiddlewareContext<Act>
    ) -> MiddlewareVerdict {
      look(state)
      return .proceed
    }
  }
}
