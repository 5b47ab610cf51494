import CBOR
import Lockstep
import Values

/// A state or an action of these tests: it is encoded as its description, and cannot be decoded.
protocol Described: SynchronizableScalar, Equatable {}

extension Described {
  func encode(into encoder: inout CBOREncoder) { encoder.encode(String(describing: self)) }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    throw CBORError(.notAllowed("a type of the tests"), at: decoder.offset)
  }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
}

/// An enumeration that is an action.
protocol DescribedAction: Described, SynchronizableAction {}

extension DescribedAction {
  /// The case, and the case of the action it carries.
  var name: String {
    guard let child = Mirror(reflecting: self).children.first, let label = child.label else {
      return String(describing: self)
    }
    if let action = child.value as? any SynchronizableAction { return "\(label).\(action.name)" }
    return label
  }
}

/// The actions that were reduced, by name.
struct Trace: Described {
  var log: [String] = []
}

/// An action that is only a name.
struct Act: Described, SynchronizableAction, ExpressibleByStringLiteral, CustomStringConvertible {
  let name: String

  init(_ name: String) { self.name = name }

  init(stringLiteral name: String) { self.init(name) }

  var description: String { name }
}

typealias Script = Reduce<Trace, Act>

extension Reduce where State == Trace, Action == Act {
  /// A reducer that records every action, and starts the effects that `effects` returns.
  static func script(_ effects: @escaping @Sendable (Act) -> Effect<Act>) -> Script {
    Script { state, action in
      state.log.append(action.name)
      return effects(action)
    }
  }
}

extension Effect {
  /// An effect that ends only when it is cancelled.
  static func never(_ name: String) -> Effect {
    .run(name: name) { _ in try await Task.sleep(for: .seconds(1_000_000)) }
  }

  /// An effect whose name alone matters.
  static func job(_ name: String) -> Effect { .run(name: name) { _ in } }
}
