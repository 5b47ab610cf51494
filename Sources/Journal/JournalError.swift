/// Why a journal cannot be read or written. Each text says what to do.
public struct JournalError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Equatable, Sendable {
    /// Another process has the directory.
    case locked
    /// The directory or the file is missing, or may not be read or written.
    case unreachable
    /// The file is not a journal, or that of another kind of state.
    case foreign
    /// A newer version of the program wrote the file.
    case newer
    /// The contents contradict themselves.
    case corrupt
    /// The disk is full.
    case full
    /// The system could not read, write or synchronise.
    case failed
  }

  public var kind: Kind
  public var description: String

  public init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
