public import Values

/// The reason that a journal cannot be read or written. Each text says what to do.
public struct JournalError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Equatable, Sendable {
    /// Another process has locked the directory.
    case locked
    /// The directory or the file is missing, or may not be read or written.
    case unreachable
    /// The file is not a journal, or is the journal of another kind of state.
    case foreign
    /// A newer version of the program wrote the file.
    case newer
    /// The contents are damaged, or contradict themselves.
    case corrupt
    /// The disk is full.
    case full
    /// The system could not read, write or synchronise.
    case failed
  }

  public var kind: Kind
  /// What is wrong, and where.
  public var problem: String
  /// What to do about it, if that is not part of `problem`.
  public var advice: String?

  public init(_ kind: Kind, _ problem: String, advice: String? = nil) {
    self.kind = kind
    self.problem = problem
    self.advice = advice
  }

  public var description: String { advice.map { "\(problem) \($0)" } ?? problem }
}

extension JournalError {
  /// The error when a restored state's digest differs from the stored one: a daemon never starts
  /// silently then.
  public static func mismatch(
    path: String, revision: UInt64, kept: Digest, found: Digest
  ) -> JournalError {
    JournalError(
      .corrupt,
      "\(path): the state of revision \(revision) has digest \(found), and \(kept) was kept: the "
        + "journal is damaged, or was written by another version of the feature.",
      advice: repair(path))
  }

  /// What to do about a damaged file.
  static func repair(_ path: String) -> String {
    "Run `lockstep fsck \(path)` to see what is damaged, and `\(recovery(of: path, to: "REVISION"))` to "
      + "go back to a revision before the damage; or restore the file from a backup."
  }

  /// The command that goes back to a revision of a journal.
  public static func recovery(of path: String, to revision: some CustomStringConvertible) -> String
  {
    let name = "/journal.sqlite"
    // A copy is no journal of the directory that it is in.
    let place = path.hasSuffix(name) ? " --state-dir \(path.dropLast(name.count))" : ""
    return "lockstepd\(place) --recover-to \(revision)"
  }
}
