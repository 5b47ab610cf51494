/// What collections say of their elements to `CBOREncoder.hasRoom`: an element takes as long as some
/// bytes, even where it is fewer.
public enum SmallForm {
  @inlinable public static func bytes(ofElements count: Int) -> Int { 8 * count }

  @inlinable public static func bytes(ofEntries count: Int) -> Int { 16 * count }

  /// Of elements or entries that are sorted first.
  @inlinable public static func bytes(ofSorted count: Int) -> Int { 64 * count }
}
