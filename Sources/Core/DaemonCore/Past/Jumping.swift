/// The jumps of a server.
struct Jumping<State: Sendable>: Sendable {
  /// The one that is being made.
  var pending: PendingJump<State>?
  var line = UndoLine()

  /// Take the jump that a query of a connection asked for.
  mutating func take(_ connection: ConnectionID, _ query: UInt64) -> PendingJump<State>? {
    guard let jump = pending, jump.connection == connection, jump.query == query else { return nil }
    pending = nil
    return jump
  }
}

/// A jump for which the shell finds how the state must change. A class, because a server has one: what
/// Swift makes to copy a struct of a generic one takes kilobytes, once for each type that it is part of.
final class PendingJump<State: Sendable>: Sendable {
  let connection: ConnectionID
  let query: UInt64
  let request: JumpRequest
  /// A revision whose contents the state is to have.
  let target: UInt64
  /// Where in the order of changes that is, if it is undone or redone.
  let place: UndoLine.Place?
  /// Later changes are taken back as well.
  let base: Base
  /// How often its change may be found again.
  private let repetitions: Int

  /// The state that is to change.
  struct Base: Sendable {
    let state: State
    let revision: UInt64
    /// The bytes of all patches until then.
    let changedBytes: Int
  }

  init(
    connection: ConnectionID, query: UInt64, request: JumpRequest, target: UInt64,
    place: UndoLine.Place?, base: Base, repetitions: Int = 3
  ) {
    self.connection = connection
    self.query = query
    self.request = request
    self.target = target
    self.place = place
    self.base = base
    self.repetitions = repetitions
  }

  /// The same jump from a later state; nil if it has been tried often enough.
  func again(on base: Base) -> PendingJump? {
    guard repetitions > 0 else { return nil }
    return PendingJump(
      connection: connection, query: query, request: request, target: target, place: place,
      base: base, repetitions: repetitions - 1)
  }

  /// The change whose contents those are.
  var contents: UInt64 { place?.present ?? target }
}
