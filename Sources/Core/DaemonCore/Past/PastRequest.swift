public import Values
import Wire

/// What a client asks of the past of a part of the state.
public struct PastRequest: Hashable, Sendable {
  public enum Subject: Hashable, Sendable {
    /// The value at a revision.
    case value(at: UInt64)
    /// The latest changes, so many, before a revision.
    case changes(count: Int, before: UInt64)
    /// How the state must change to have the contents of a revision: for a jump, not for a client.
    case change(to: UInt64)
  }

  /// The part, with the names that the schema gives.
  public let path: Path
  public let subject: Subject

  /// What a jump to a revision needs.
  init(change revision: UInt64) {
    path = .root
    subject = .change(to: revision)
  }

  /// What a listing of a former revision needs.
  init(of path: Path, at revision: UInt64) {
    self.path = path
    subject = .value(at: revision)
  }

  /// The most changes of one report.
  public static let mostChanges = 1000

  /// The arguments of the query `past`: a JSON Pointer and a revision.
  init(past arguments: [String]) throws(ReportError) {
    path = try Path(argument: arguments.first ?? "", of: "past")
    guard arguments.count > 1, let revision = UInt64(arguments[1]) else {
      throw ReportError(.malformed, "past: at which revision? Give a number.")
    }
    subject = .value(at: revision)
  }

  /// The arguments of the query `changes`: a JSON Pointer, how many changes (100), and the revision
  /// that made the first one that is known. Each may be left out.
  init(changes arguments: [String]) throws(ReportError) {
    path = try Path(argument: arguments.first ?? "", of: "changes")
    let count = arguments.count > 1 ? Int(arguments[1]) : 100
    let before = arguments.count > 2 ? UInt64(arguments[2]) : .max
    guard let count, (1...Self.mostChanges).contains(count), let before else {
      throw ReportError(
        .malformed, "changes: how many? From 1 to \(Self.mostChanges), and before which revision?")
    }
    subject = .changes(count: count, before: before)
  }
}
