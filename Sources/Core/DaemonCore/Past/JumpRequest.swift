import Wire

/// What a client asks for that makes a revision with the contents of a former one.
enum JumpRequest: Equatable, Sendable {
  case jump(to: UInt64)
  /// So many changes.
  case undo(Int)
  case redo(Int)

  /// The most changes that are undone or redone at once.
  static let mostSteps = 1000

  /// The arguments of the query `jump`, a revision; and of `undo` and `redo`, how many changes (1).
  init(_ kind: ReportName.Jump, _ arguments: [String]) throws(ReportError) {
    if case .jump = kind {
      guard let revision = arguments.first.flatMap({ UInt64($0) }) else {
        throw ReportError(.malformed, "jump: to which revision? Give a number.")
      }
      self = .jump(to: revision)
      return
    }
    let count = arguments.first.map { Int($0) } ?? 1
    guard let count, (1...Self.mostSteps).contains(count) else {
      throw ReportError(.malformed, "how many changes? From 1 to \(Self.mostSteps).")
    }
    self = kind == .undo ? .undo(count) : .redo(count)
  }

  /// The name in the log of what it makes, with the revision whose contents that has.
  func name(_ target: UInt64) -> String {
    switch self {
    case .jump: "jump.\(target)"
    case .undo: "undo.\(target)"
    case .redo: "redo.\(target)"
    }
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
  /// The state that is to change, and its revision. Later changes are taken back as well.
  let base: State
  let baseRevision: UInt64

  init(
    connection: ConnectionID, query: UInt64, request: JumpRequest, target: UInt64,
    place: UndoLine.Place?, base: State, baseRevision: UInt64
  ) {
    self.connection = connection
    self.query = query
    self.request = request
    self.target = target
    self.place = place
    self.base = base
    self.baseRevision = baseRevision
  }

  /// The change whose contents those are.
  var contents: UInt64 { place?.present ?? target }
}
