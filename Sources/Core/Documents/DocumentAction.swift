public import Values

/// An operation on a document. The numbers of the cases are part of the protocol.
public enum DocumentAction: Equatable, Sendable {
  /// Put a value at a path, whose parent must exist: an object, or an array with that index.
  /// The empty path replaces the whole document.
  case set(Path, Value)
  /// Merge a patch into the value at a path (RFC 7386); an absent value becomes an object.
  case merge(Path, Value)
  /// Remove the value at a path.
  case remove(Path)
  /// Add a number to the number at a path; an absent one counts as 0.
  case increment(Path, by: Value)
  /// Append a value to the array at a path; an absent one counts as empty.
  case append(Path, Value)
  /// Insert as RFC 6902's `add`: before the index of an array (`-` is its end), or as the member
  /// of an object, replacing one of that name.
  case insert(Path, Value)
  /// Move a value as RFC 6902's `move`.
  case move(from: Path, to: Path)
  /// Copy a value as RFC 6902's `copy`.
  case copy(from: Path, to: Path)
  /// Reject the action (or the transaction around it) unless the value at a path equals this one,
  /// as RFC 6902 compares: numbers by their value.
  case test(Path, Value)
  /// Perform all of these, in order, or none.
  case transaction([DocumentAction])
  /// Replace an existing value, as RFC 6902's `replace`: an absent value is an error.
  case replace(Path, Value)
}
