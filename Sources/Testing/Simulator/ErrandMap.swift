public import CBOR
import DaemonCore
public import Values

/// Counters by name: the state of the errands, which start effects of every kind.
public struct ErrandMap: Journaled {
  var counters = SyncMap<String, Int>()

  public init() {}

  public func isSame(as other: ErrandMap) -> Bool { counters.isSame(as: other.counters) }
  public func encode(into encoder: inout CBOREncoder) { counters.encode(into: &encoder) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    counters = try SyncMap(from: &decoder, seed: seed)
  }

  public func encodeDifference(from old: ErrandMap, into encoder: inout CBOREncoder) -> Bool {
    counters.encodeDifference(from: old.counters, into: &encoder)
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try counters.apply(patch: &decoder, seed: seed)
  }

  public func digest(seed: HashSeed) -> UInt64 { counters.digest(seed: seed) }
  public mutating func adopt(seed: HashSeed) { counters.adopt(seed: seed) }
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    counters.settle(into: &encoder)
  }
  public mutating func rollBack() { counters.rollBack() }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .map(key: .text, value: .integer)
  }

  public static func visit<V: PartVisitor>(
    _ new: ErrandMap?, _ old: ErrandMap?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    SyncMap.visit(new?.counters, old?.counters, at: path, from: depth, &visitor)
  }
}
