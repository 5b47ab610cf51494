import CBOR
import Lockstep
import Values

/// The name of an action in a simulation: who sent it, and the how manyth of theirs it is.
struct Tag: Hashable, Sendable, CustomStringConvertible {
  var client: UInt64
  var number: UInt64
  var description: String { "action \(number) of client \(client)" }
}

/// An action that says whose it is, so that it can be seen how often, and in which order, the
/// daemon did it.
struct Tagged<Action: SynchronizableAction>: SynchronizableAction, SynchronizableScalar {
  var tag: Tag
  var action: Action

  var name: String { action.name }

  init(_ tag: Tag, _ action: Action) {
    self.tag = tag
    self.action = action
  }

  func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(tag.client)
    encoder.encode(tag.number)
    action.encode(into: &encoder)
  }

  func isSame(as other: Tagged) -> Bool { tag == other.tag && action.isSame(as: other.action) }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    guard try decoder.array() == 3 else { throw CBORError(.numberOutOfRange, at: 0) }
    tag = Tag(client: try decoder.unsigned(), number: try decoder.unsigned())
    action = try Action(from: &decoder, seed: seed)
    decoder.close()
  }
}

/// What the daemon did since it was looked at last.
///
/// Sendable: a simulation runs on one thread at a time, and its log is seen by nobody else.
final class WitnessLog<State: Sendable>: @unchecked Sendable {
  struct Entry {
    var tag: Tag
    /// The state when the action came: a copy, so that every later write meets a shared tree.
    var before: State
    var isRejected = false
  }

  var entries: [Entry] = []
}

/// A reducer that does what another does, and writes down what it was asked.
struct Witness<R: Reducer>: Reducer {
  let base: R
  let log: WitnessLog<R.State>

  func reduce(
    into state: inout R.State, action: Tagged<R.Action>
  ) throws(Rejection) -> Effect<Tagged<R.Action>> {
    log.entries.append(.init(tag: action.tag, before: state))
    do throws(Rejection) {
      let effect = try base.reduce(into: &state, action: action.action)
      return effect.map { Tagged(action.tag, $0) }
    } catch {
      log.entries[log.entries.count - 1].isRejected = true
      throw error
    }
  }
}
