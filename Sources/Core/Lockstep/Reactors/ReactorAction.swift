public import CBOR
public import Values

/// The actions of a reactor's store: actions from outside, and those of the store itself, which
/// never leave it.
public enum ReactorAction<R: Reactor>: Sendable {
  case action(R.Action)
  /// An element of the transformed stream of actions.
  case transformed(R.Action)
  case mutation(R.Mutation)
  /// The daemon has started, or the child was created: `events` and the transformed streams begin.
  case begin
  /// A transformed stream has failed; the next element begins it again.
  case failed(_ stream: String, _ error: String)
  /// Sets the state of a stub. A reactor that is no stub rejects it.
  case stub(R.State)
}

extension ReactorAction: Equatable where R.Action: Equatable, R.Mutation: Equatable {
  public static func == (first: Self, second: Self) -> Bool {
    switch (first, second) {
    case (.action(let first), .action(let second)): first == second
    case (.transformed(let first), .transformed(let second)): first == second
    case (.mutation(let first), .mutation(let second)): first == second
    case (.begin, .begin): true
    case (.failed(let stream, let error), .failed(let other, let otherError)):
      stream == other && error == otherError
    case (.stub(let first), .stub(let second)): first.isSame(as: second)
    default: false
    }
  }
}

/// On the wire it is the reactor's action. The other actions have no form there.
extension ReactorAction: SynchronizableAction, SynchronizableScalar {
  public var name: String {
    switch self {
    case .action(let action), .transformed(let action): action.name
    // Mutations are private, so their names are not shown.
    case .mutation: "(mutation)"
    case .begin: "(begin)"
    case .failed: "(failed)"
    case .stub: "(stub)"
    }
  }

  public func isSame(as other: ReactorAction) -> Bool {
    guard case .action(let first) = self, case .action(let second) = other else { return false }
    return first.isSame(as: second)
  }

  public func encode(into encoder: inout CBOREncoder) {
    if case .action(let action) = self {
      action.encode(into: &encoder)
    } else {
      encoder.encodeNull()
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = .action(try R.Action(from: &decoder, seed: seed))
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    R.Action.schemaKind(in: &schema)
  }
}
