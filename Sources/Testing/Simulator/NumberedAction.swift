public import CBOR
public import Lockstep
public import Values

/// An action without values, which travels as the number of its case.
public protocol NumberedAction: SynchronizableAction, SynchronizableScalar, CaseIterable,
  RawRepresentable<UInt64>
{}

extension NumberedAction {
  public var name: String { "\(self)" }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }

  public func encode(into encoder: inout CBOREncoder) { encoder.encode(rawValue) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    let code = try decoder.unsigned()
    guard let action = Self(rawValue: code) else { throw CBORError(.unknownCase(code), at: start) }
    self = action
  }
}
