import Documents
import Lockstep
import Testing
import Values

/// The examples of RFC 6902, appendix A, and the rules around them.
@Suite struct JSONPatchTests {
  struct Example: Sendable, CustomTestStringConvertible {
    var name: String
    var document: String
    var patch: String
    /// Nil where the patch must be rejected.
    var result: String?
    var testDescription: String { name }
  }

  static let appendix: [Example] = [
    .init(
      name: "A.1 adding an object member", document: #"{"foo": "bar"}"#,
      patch: #"[{"op": "add", "path": "/baz", "value": "qux"}]"#,
      result: #"{"baz": "qux", "foo": "bar"}"#),
    .init(
      name: "A.2 adding an array element", document: #"{"foo": ["bar", "baz"]}"#,
      patch: #"[{"op": "add", "path": "/foo/1", "value": "qux"}]"#,
      result: #"{"foo": ["bar", "qux", "baz"]}"#),
    .init(
      name: "A.3 removing an object member", document: #"{"baz": "qux", "foo": "bar"}"#,
      patch: #"[{"op": "remove", "path": "/baz"}]"#, result: #"{"foo": "bar"}"#),
    .init(
      name: "A.4 removing an array element", document: #"{"foo": ["bar", "qux", "baz"]}"#,
      patch: #"[{"op": "remove", "path": "/foo/1"}]"#, result: #"{"foo": ["bar", "baz"]}"#),
    .init(
      name: "A.5 replacing a value", document: #"{"baz": "qux", "foo": "bar"}"#,
      patch: #"[{"op": "replace", "path": "/baz", "value": "boo"}]"#,
      result: #"{"baz": "boo", "foo": "bar"}"#),
    .init(
      name: "A.6 moving a value",
      document: #"{"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}"#,
      patch: #"[{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]"#,
      result: #"{"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}"#),
    .init(
      name: "A.7 moving an array element",
      document: #"{"foo": ["all", "grass", "cows", "eat"]}"#,
      patch: #"[{"op": "move", "from": "/foo/1", "path": "/foo/3"}]"#,
      result: #"{"foo": ["all", "cows", "eat", "grass"]}"#),
    .init(
      name: "A.8 testing a value: success", document: #"{"baz": "qux", "foo": ["a", 2, "c"]}"#,
      patch: #"""
        [{"op": "test", "path": "/baz", "value": "qux"},
         {"op": "test", "path": "/foo/1", "value": 2}]
        """#,
      result: #"{"baz": "qux", "foo": ["a", 2, "c"]}"#),
    .init(
      name: "A.9 testing a value: error", document: #"{"baz": "qux"}"#,
      patch: #"[{"op": "test", "path": "/baz", "value": "bar"}]"#, result: nil),
    .init(
      name: "A.10 adding a nested member object", document: #"{"foo": "bar"}"#,
      patch: #"[{"op": "add", "path": "/child", "value": {"grandchild": {}}}]"#,
      result: #"{"foo": "bar", "child": {"grandchild": {}}}"#),
    .init(
      name: "A.11 ignoring unrecognized elements", document: #"{"foo": "bar"}"#,
      patch: #"[{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]"#,
      result: #"{"foo": "bar", "baz": "qux"}"#),
    .init(
      name: "A.12 adding to a nonexistent target", document: #"{"foo": "bar"}"#,
      patch: #"[{"op": "add", "path": "/baz/bat", "value": "qux"}]"#, result: nil),
    .init(
      name: "A.14 ~ escape ordering", document: #"{"/": 9, "~1": 10}"#,
      patch: #"[{"op": "test", "path": "/~01", "value": 10}]"#,
      result: #"{"/": 9, "~1": 10}"#),
    .init(
      name: "A.15 comparing strings and numbers", document: #"{"/": 9, "~1": 10}"#,
      patch: #"[{"op": "test", "path": "/~01", "value": "10"}]"#, result: nil),
    .init(
      name: "A.16 adding an array value", document: #"{"foo": ["bar"]}"#,
      patch: #"[{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]"#,
      result: #"{"foo": ["bar", ["abc", "def"]]}"#),
  ]

  static func op(_ name: String, _ document: String, _ patch: String, _ result: String?) -> Example
  {
    .init(name: name, document: document, patch: "[\(patch)]", result: result)
  }

  static let edges: [Example] = [
    op("add to the root replaces", "{\"a\": 1}", #"{"op":"add","path":"","value":[1]}"#, "[1]"),
    op("replace the root", "[1]", #"{"op":"replace","path":"","value":null}"#, "null"),
    op("the root is not removed", "[1]", #"{"op":"remove","path":""}"#, nil),
    op("add at the count appends", "[1]", #"{"op":"add","path":"/1","value":2}"#, "[1,2]"),
    op("add behind the count", "[1]", #"{"op":"add","path":"/2","value":2}"#, nil),
    op("leading zeros", "[1,2]", #"{"op":"replace","path":"/01","value":2}"#, nil),
    op("a sign", "[1,2]", #"{"op":"replace","path":"/+1","value":2}"#, nil),
    op("a negative index", "[1,2]", #"{"op":"replace","path":"/-1","value":2}"#, nil),
    op("an index with an exponent", "[1,2]", #"{"op":"test","path":"/1e0","value":2}"#, nil),
    op("- is no element", "[1,2]", #"{"op":"remove","path":"/-"}"#, nil),
    op("- is no element to replace", "[1]", #"{"op":"replace","path":"/-","value":1}"#, nil),
    op("- is no element to test", "[1]", #"{"op":"test","path":"/-","value":1}"#, nil),
    op("- is a member", #"{"-": 1}"#, #"{"op":"replace","path":"/-","value":2}"#, #"{"-":2}"#),
    op("0 is a member", #"{"0": 1}"#, #"{"op":"remove","path":"/0"}"#, "{}"),
    op("the empty name", #"{"": 1}"#, #"{"op":"replace","path":"/","value":2}"#, #"{"":2}"#),
    op("replace needs a value", "{}", #"{"op":"replace","path":"/a","value":2}"#, nil),
    op("remove needs a value", "{}", #"{"op":"remove","path":"/a"}"#, nil),
    op("an element of a string", #""ab""#, #"{"op":"test","path":"/0","value":"a"}"#, nil),
    op("move into itself", #"{"a":{}}"#, #"{"op":"move","from":"/a","path":"/a/b"}"#, nil),
    op("move onto itself", #"{"a":1}"#, #"{"op":"move","from":"/a","path":"/a"}"#, #"{"a":1}"#),
    op("move nothing onto itself", "{}", #"{"op":"move","from":"/a","path":"/a"}"#, nil),
    op("move from nowhere", "{}", #"{"op":"move","from":"/a","path":"/b"}"#, nil),
    op(
      "move to the root", #"{"a":{"b":1}}"#, #"{"op":"move","from":"/a","path":""}"#, #"{"b":1}"#),
    op("move the root", #"{"a":1}"#, #"{"op":"move","from":"","path":"/a"}"#, nil),
    op(
      "move back in an array", "[1,2,3]", #"{"op":"move","from":"/2","path":"/0"}"#, "[3,1,2]"),
    op("move to the end", "[1,2,3]", #"{"op":"move","from":"/0","path":"/-"}"#, "[2,3,1]"),
    op("move behind the end", "[1,2,3]", #"{"op":"move","from":"/0","path":"/3"}"#, nil),
    op(
      "move over a member", #"{"a":1,"b":2}"#, #"{"op":"move","from":"/a","path":"/b"}"#,
      #"{"b":1}"#),
    op(
      "copy into itself", #"{"a":{"x":1}}"#, #"{"op":"copy","from":"/a","path":"/a/b"}"#,
      #"{"a":{"b":{"x":1},"x":1}}"#),
    op(
      "a copy is its own", #"{"a":[1]}"#,
      #"{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}"#,
      #"{"a":[1],"b":[1,2]}"#),
    op("1 is 1.0", "[1]", #"{"op":"test","path":"/0","value":1.0}"#, "[1]"),
    op("-0.0 is 0", "[-0.0]", #"{"op":"test","path":"/0","value":0}"#, "[-0.0]"),
    op(
      "large integers are exact", "[9007199254740993]",
      #"{"op":"test","path":"/0","value":9007199254740992.0}"#, nil),
    op(
      "2^64 - 1 is not 2^64", "[18446744073709551615]",
      #"{"op":"test","path":"/0","value":18446744073709551616.0}"#, nil),
    op(
      "objects have no order", #"{"a":{"x":1,"y":[1,{"z":2.0}]}}"#,
      #"{"op":"test","path":"/a","value":{"y":[1.0,{"z":2}],"x":1}}"#,
      #"{"a":{"x":1,"y":[1,{"z":2.0}]}}"#),
    op("arrays have order", "[[1,2]]", #"{"op":"test","path":"/0","value":[2,1]}"#, nil),
    op("a longer array", "[[1,2]]", #"{"op":"test","path":"/0","value":[1]}"#, nil),
    op("null is no absence", #"{"a":null}"#, #"{"op":"test","path":"/b","value":null}"#, nil),
    op("text is exact", #"["é"]"#, #"{"op":"test","path":"/0","value":"e\u0301"}"#, nil),
    op("true is not 1", "[true]", #"{"op":"test","path":"/0","value":1}"#, nil),
    op(
      "all or nothing", #"{"a":1}"#,
      #"{"op":"replace","path":"/a","value":2},{"op":"test","path":"/a","value":1}"#, nil),
  ]

  @Test(arguments: appendix + edges)
  func `a patch does what RFC 6902 says`(_ example: Example) throws {
    let action = try JSONPatch.actions(from: json(example.patch))
    var document = try document(example.document)
    guard let expected = example.result else {
      #expect(throws: Rejection.self) { try reduce(action, into: &document) }
      #expect(try document.root == json(example.document))
      return
    }
    try reduce(action, into: &document)
    #expect(try document.root == json(expected))
  }

  @Test func `A.13: a member given twice is refused by the parser`() {
    let text = #"[{"op": "add", "path": "/baz", "value": "qux", "op": "remove"}]"#
    #expect(throws: JSONError.self) { try json(text) }
  }

  @Test(arguments: [
    (#"{}"#, "a JSON Patch is an array of operations, not an object"),
    (#"[1]"#, "operation 0: an operation is an object, not a number"),
    (#"[{"path": ""}]"#, "operation 0: the member \"op\" is missing"),
    (
      #"[{"op": "test", "path": "", "value": 1}, {"op": "spam", "path": ""}]"#,
      "operation 1: there is no operation \"spam\"; there are: add, copy, move, remove, replace, "
        + "test"
    ),
    (#"[{"op": "add", "path": "/a"}]"#, "operation 0: the member \"value\" is missing"),
    (#"[{"op": "move", "path": "/a"}]"#, "operation 0: the member \"from\" is missing"),
    (#"[{"op": "remove", "path": 1}]"#, "operation 0: \"path\" is a string, not a number"),
    (
      #"[{"op": "remove", "path": "a"}]"#,
      "operation 0: \"path\" is \"a\", which is no JSON Pointer: it is empty or begins with '/', "
        + "and writes '~' as ~0"
    ),
  ])
  func `a wrong patch is refused with a sentence`(_ text: String, _ message: String) throws {
    let patch = try json(text)
    let error = #expect(throws: JSONPatchError.self) { try JSONPatch.actions(from: patch) }
    #expect(error?.description == message)
  }
}
