/// An exclusive lock on a journal's directory, for a daemon that cannot open its journal yet. Used
/// by one thread at a time.
public final class JournalLock {
  private var directory: JournalDirectory

  /// Lock the directory, which is made if it is missing.
  public init(directory name: String) throws(JournalError) {
    directory = try JournalDirectory(name, create: true)
  }

  /// Release the lock: opening the journal locks the directory again.
  public func release() { directory.release() }
}
