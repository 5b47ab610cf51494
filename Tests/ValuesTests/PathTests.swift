import Testing
import Values

@Suite struct PathTests {
  @Test(arguments: [
    ("/a", "no", "no (at /a)"),
    ("", "no", "no (at the whole document)"),
    ("", "the object at the root has no member", "the object at the root has no member"),
    ("/a", "the number at /a is no array", "the number at /a is no array"),
    ("/a", "no array is at /a.", "no array is at /a."),
    ("/a", "the number at /a/b is no array", "the number at /a/b is no array (at /a)"),
    ("/a", "the number at /ab, is", "the number at /ab, is (at /a)"),
  ])
  func `a message names its path once`(pointer: String, sentence: String, named: String) throws {
    let path = try #require(Path(pointer: pointer))
    #expect(path.named(behind: sentence) == named)
  }
}
