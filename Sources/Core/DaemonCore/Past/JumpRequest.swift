import Wire

/// What a client asks for that makes a revision with the contents of a former one.
enum JumpRequest: Equatable, Sendable {
  case jump(to: UInt64)
  /// So many changes.
  case undo(Int)
  case redo(Int)

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
    guard let count, (1...ReportName.mostSteps).contains(count) else {
      throw ReportError(.malformed, "how many changes? From 1 to \(ReportName.mostSteps).")
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
