public import CBOR
public import Values

/// The actions of a value that a request loads.
public enum LoadableAction<Value: Synchronizable, Failure: Synchronizable>: Sendable {
  /// Begins a request. One that runs is cancelled first: the latest wins.
  case load
  /// Cancels the running request: the value is again what it was before it.
  case cancel
  /// Begins a request if the last one failed.
  case retry
  /// The request has loaded the value. Clients must not send it.
  case loaded(Value)
  /// The request has failed. Clients must not send it.
  case failed(Failure)
}

extension LoadableAction: Equatable where Value: Equatable, Failure: Equatable {}

// The code that `@Action` would generate, if this module could use it.

extension LoadableAction: SynchronizableAction, SynchronizableScalar {
  public var name: String {
    switch self {
    case .load: "load"
    case .cancel: "cancel"
    case .retry: "retry"
    case .loaded: "loaded"
    case .failed: "failed"
    }
  }

  public func isSame(as other: Self) -> Bool {
    switch (self, other) {
    case (.load, .load), (.cancel, .cancel), (.retry, .retry): true
    case (.loaded(let first), .loaded(let second)): first.isSame(as: second)
    case (.failed(let first), .failed(let second)): first.isSame(as: second)
    case (.load, _), (.cancel, _), (.retry, _), (.loaded, _), (.failed, _): false
    }
  }

  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .load: encoder.encode(0)
    case .cancel: encoder.encode(1)
    case .retry: encoder.encode(2)
    case .loaded(let value):
      encoder.array(2)
      encoder.encode(3)
      value.encode(into: &encoder)
    case .failed(let failure):
      encoder.array(2)
      encoder.encode(4)
      failure.encode(into: &encoder)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var item = try CaseDecoder(&decoder)
    switch item.number {
    case 0: self = .load
    case 1: self = .cancel
    case 2: self = .retry
    case 3:
      self = .loaded(try item.field("LoadableAction.loaded", "_0", from: &decoder, seed: seed))
    case 4:
      self = .failed(try item.field("LoadableAction.failed", "_0", from: &decoder, seed: seed))
    default: throw item.unknown
    }
    try item.finish(&decoder)
  }

  public mutating func adopt(seed: HashSeed) {
    switch self {
    case .loaded(var value):
      value.adopt(seed: seed)
      self = .loaded(value)
    case .failed(var failure):
      failure.adopt(seed: seed)
      self = .failed(failure)
    case .load, .cancel, .retry: break
    }
  }

  public static var holdsCollections: Bool { Value.holdsCollections || Failure.holdsCollections }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    let name = "LoadableAction<\(Value.self), \(Failure.self)>"
    return schema.kind(of: Self.self, named: name) { schema in
      let value = Schema.Field(1, "_0", Value.schemaKind(in: &schema))
      let failure = Schema.Field(1, "_0", Failure.schemaKind(in: &schema))
      return .enumeration([
        .init(0, "load"), .init(1, "cancel"), .init(2, "retry"), .init(3, "loaded", [value]),
        .init(4, "failed", [failure]),
      ])
    }
  }
}

extension LoadableAction: CasePathable {
  /// The paths of the cases.
  public struct AllCasePaths: Sendable {
    public var load: CasePath<LoadableAction, Void> {
      CasePath(embed: { .load }, extract: { if case .load = $0 { () } else { nil } })
    }

    public var cancel: CasePath<LoadableAction, Void> {
      CasePath(embed: { .cancel }, extract: { if case .cancel = $0 { () } else { nil } })
    }

    public var retry: CasePath<LoadableAction, Void> {
      CasePath(embed: { .retry }, extract: { if case .retry = $0 { () } else { nil } })
    }

    /// The value.
    public var loaded: CasePath<LoadableAction, Value> {
      CasePath(
        embed: { .loaded($0) },
        extract: { if case .loaded(let value) = $0 { value } else { nil } })
    }

    /// The failure.
    public var failed: CasePath<LoadableAction, Failure> {
      CasePath(
        embed: { .failed($0) },
        extract: { if case .failed(let failure) = $0 { failure } else { nil } })
    }
  }

  public static var allCasePaths: AllCasePaths { AllCasePaths() }
}
