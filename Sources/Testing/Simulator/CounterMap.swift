public import CBOR
import DaemonCore
public import Lockstep
public import Values

/// A state of typed collections: counters by group and name.
public struct CounterMap: Journaled {
  var groups = SyncMap<String, SyncMap<String, Int>>()

  public init() {}

  public func isSame(as other: CounterMap) -> Bool { groups.isSame(as: other.groups) }
  public func encode(into encoder: inout CBOREncoder) { groups.encode(into: &encoder) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    groups = try SyncMap(from: &decoder, seed: seed)
  }

  public func encodeDifference(from old: CounterMap, into encoder: inout CBOREncoder) -> Bool {
    groups.encodeDifference(from: old.groups, into: &encoder)
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try groups.apply(patch: &decoder, seed: seed)
  }

  public func digest(seed: HashSeed) -> UInt64 { groups.digest(seed: seed) }
  public mutating func adopt(seed: HashSeed) { groups.adopt(seed: seed) }
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    groups.settle(into: &encoder)
  }
  public mutating func rollBack() { groups.rollBack() }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .map(key: .text, value: .map(key: .text, value: .integer))
  }

  public static func visit<V: PartVisitor>(
    _ new: CounterMap?, _ old: CounterMap?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    SyncMap.visit(new?.groups, old?.groups, at: path, from: depth, &visitor)
  }
}

/// The actions on counters.
public enum CounterAction: Equatable, SynchronizableAction, SynchronizableScalar {
  case set(String, String, Int)
  case remove(String, String)
  case drop(String)
  /// Changes much and then fails: none of it may be visible.
  case fail(String)

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  public var name: String {
    switch self {
    case .set: "set"
    case .remove: "remove"
    case .drop: "drop"
    case .fail: "fail"
    }
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(4)
    switch self {
    case .set(let group, let name, let value): put(0, group, name, value, &encoder)
    case .remove(let group, let name): put(1, group, name, 0, &encoder)
    case .drop(let group): put(2, group, "", 0, &encoder)
    case .fail(let group): put(3, group, "", 0, &encoder)
    }
  }

  private func put(
    _ number: UInt64, _ group: String, _ name: String, _ value: Int,
    _ encoder: inout CBOREncoder
  ) {
    encoder.encode(number)
    encoder.encode(group)
    encoder.encode(name)
    encoder.encode(value)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    _ = try decoder.array()
    let number = try decoder.unsigned()
    let (group, name) = (try decoder.text(), try decoder.text())
    let value = Int(try decoder.integer())
    decoder.close()
    switch number {
    case 0: self = .set(group, name, value)
    case 1: self = .remove(group, name)
    case 2: self = .drop(group)
    case 3: self = .fail(group)
    default: throw CBORError(.unknownCase(number), at: start)
    }
  }
}

/// Counters as a feature.
public struct CounterFeature: Reducer {
  public init() {}

  public func reduce(
    into state: inout CounterMap, action: CounterAction
  ) throws(Rejection) -> Effect<CounterAction> {
    switch action {
    case .set(let group, let name, let value):
      let done: Void? = state.groups.modifyValue(forKey: group) {
        $0.updateValue(value, forKey: name)
        return
      }
      if done == nil {
        state.groups.updateValue(
          SyncMap(seed: state.groups.seed, uniqueKeysWithValues: [(name, value)]), forKey: group)
      }
    case .remove(let group, let name):
      state.groups.modifyValue(forKey: group) {
        $0.removeValue(forKey: name)
        return
      }
    case .drop(let group): state.groups.removeValue(forKey: group)
    case .fail(let group):
      state.groups.removeAll()
      state.groups[group] = SyncMap(seed: state.groups.seed)
      throw Rejection(.refused, "failed as asked")
    }
    return .none
  }
}

extension SimulatedFeature<CounterFeature, Value> {
  /// Typed maps in the daemon, mirrored as dynamic values.
  public static var counters: SimulatedFeature {
    SimulatedFeature(
      CounterFeature(), mirroredAs: Value.self, initial: { CounterMap() },
      action: { random in
        let group = "g\(Int.random(in: 0..<4, using: &random))"
        let name = "n\(Int.random(in: 0..<12, using: &random))"
        return switch Int.random(in: 0..<20, using: &random) {
        case 0: .drop(group)
        case 1: .fail(group)
        case 2...5: .remove(group, name)
        default: .set(group, name, Int.random(in: 0...3, using: &random))
        }
      },
      path: { random in
        let names: [PathKey] = [
          .text("g\(Int.random(in: 0..<4, using: &random))"),
          .text("n\(Int.random(in: 0..<12, using: &random))"),
        ]
        return Path(Array(names[..<Int.random(in: 0...2, using: &random)]))
      })
  }
}
