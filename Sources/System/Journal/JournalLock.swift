/// The right to a journal's directory, for a daemon that cannot open its journal yet. Used by one
/// thread at a time.
public final class JournalLock {
  private var directory: JournalDirectory

  /// Take the directory, which is made if it is missing.
  public init(directory name: String) throws(JournalError) {
    directory = try JournalDirectory(name, create: true)
  }

  /// Let the directory go: opening the journal takes it anew.
  public func release() { directory.release() }
}
