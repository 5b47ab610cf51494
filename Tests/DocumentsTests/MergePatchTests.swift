import Documents
import Lockstep
import Testing
import Values

@Suite struct MergePatchTests {
  /// RFC 7386, appendix A: original, patch, result.
  static let appendix: [(String, String, String)] = [
    (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
    (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
    (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
    (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
    (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
    (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
    (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
    (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
    (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
    (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
    (#"{"a":"foo"}"#, "null", "null"),
    (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
    (#"{"e":null}"#, #"{"a":1}"#, #"{"a":1,"e":null}"#),
    ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
    ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
  ]

  @Test(arguments: appendix)
  func `a merge does what RFC 7386 says`(
    _ original: String, _ patch: String, _ expected: String
  ) throws {
    #expect(try result(.merge([], json(patch)), on: original) == expected)
    // The same below a member and in an element.
    let below = try result(
      .merge(pointer("/x"), json(patch)), on: #"{"x":\#(original)}"#)
    #expect(below == #"{"x":\#(expected)}"#)
    let element = try result(.merge(pointer("/0"), json(patch)), on: "[\(original)]")
    #expect(element == "[\(expected)]")
  }

  @Test func `an absent member becomes an object, and its parent must exist`() throws {
    #expect(
      try result(.merge(pointer("/x"), json(#"{"a":1,"b":null}"#)), on: "{}") == #"{"x":{"a":1}}"#)
    let rejection = try rejection(.merge(pointer("/x/y"), json(#"{"a":1}"#)), on: "{}")
    #expect(rejection?.code == .badPath)
  }

  @Test func `nulls in arrays are values`() throws {
    #expect(
      try result(.merge([], json(#"{"a":[null,{"b":null}]}"#)), on: "{}")
        == #"{"a":[null,{"b":null}]}"#)
  }
}
