import CBOR
import Documents
import Lockstep
import Schemas
import Testing
import Values

@Suite struct ActionJSONTests {
  static let document = DocumentFeature().schema

  /// A schema of a typed daemon.
  static let typed = Schema(
    state: .type("State"), action: .type("Action"),
    types: [
      "State": .structure([.init(1, "n", .integer)]),
      "Point": .structure([.init(1, "x", .double), .init(2, "label", .optional(.text))]),
      "Todos": .enumeration([.init(0, "add", [.init(1, "", .text)]), .init(1, "clear")]),
      "Action": .enumeration([
        .init(0, "reset"),
        .init(1, "todos", [.init(1, "_0", .type("Todos"))]),
        .init(2, "resize", [.init(1, "_0", .unsigned), .init(2, "_1", .unsigned)]),
        .init(
          3, "place",
          [
            .init(1, "at", .type("Point")), .init(2, "tags", .array(.text)),
            .init(3, "sizes", .map(key: .integer, value: .bool)),
            .init(4, "key", .bytes), .init(5, "note", .optional(.text)),
          ]),
      ]),
    ])

  @Test(arguments: [
    (
      #"{"increment":{"path":"/a/b","by":2}}"#,
      DocumentAction.increment([.text("a"), .text("b")], by: 2)
    ),
    (#"{"increment":{"path":"/a"}}"#, .increment([.text("a")], by: 1)),
    (#"{"set":{"path":["a",0],"value":{"x":null}}}"#, .set([.text("a"), .integer(0)], ["x": nil])),
    (#"{"remove":{"path":""}}"#, .remove([])),
    (#"{"move":{"from":"/a","to":"/b"}}"#, .move(from: [.text("a")], to: [.text("b")])),
    (
      #"{"transaction":{"actions":[{"remove":{"path":"/a"}},{"set":{"path":"/b","value":[]}}]}}"#,
      .transaction([.remove([.text("a")]), .set([.text("b")], [])])
    ),
  ])
  func `an action is written by names`(_ text: String, _ action: DocumentAction) throws {
    let payload = try ActionJSON.payload(of: json(text), schema: Self.document)
    #expect(try decodedAction(payload) == action)
    let form = try named(DocumentsTests.payload(action), Self.document)
    let again = try ActionJSON.payload(of: form, schema: Self.document)
    #expect(try decodedAction(again) == textual(action))
  }

  @Test(
    arguments: [
      ("reset", nil, #""reset""#), ("todos.add", "milk", #"{"todos":{"add":"milk"}}"#),
      ("todos.clear", nil, #"{"todos":"clear"}"#),
      ("resize", [640, 480], #"{"resize":[640,480]}"#),
    ] as [(String, Value?, String)])
  func `a name leads through cases inside of cases`(
    _ name: String, _ content: Value?, _ whole: String
  ) throws {
    let action = try ActionJSON.action(named: name, carrying: content, schema: Self.typed)
    #expect(action.isSame(as: try json(whole)))
    #expect(throws: Never.self) { try ActionJSON.payload(of: action, schema: Self.typed) }
  }

  @Test(arguments: [
    ("todo.add", #"there is no action "todo"; there are: place, reset, resize, todos"#),
    ("resize.add", #""resize" carries 2 values, and no action"#),
    ("reset.add", #""reset" carries 0 values, and no action"#),
    ("todos.add.more", #"a string has no cases, so there is no "more""#),
  ])
  func `a name that leads nowhere says where it ends`(_ name: String, _ message: String) throws {
    let error = #expect(throws: ActionJSONError.self) {
      try ActionJSON.action(named: name, carrying: 1, schema: Self.typed)
    }
    #expect(error?.message == message)
  }

  /// A payload by the names of the schema, as logs show it.
  private func named(_ payload: [UInt8], _ schema: Schema) throws -> Value {
    try Translation(from: schema, to: .names, root: .action).namedValue(of: payload)
  }

  /// In a JSON Pointer every key is text.
  private func textual(_ action: DocumentAction) -> DocumentAction {
    guard case .set(let path, let value) = action else { return action }
    return .set(Path(path.keys.map { .text($0.description) }), value)
  }

  @Test(arguments: [
    (#""reset""#, [0x00] as [UInt8]),
    (#"{"todos":{"add":"milk"}}"#, [0x82, 1, 0x82, 0, 0x64, 0x6d, 0x69, 0x6c, 0x6b]),
    (#"{"todos":"clear"}"#, [0x82, 1, 1]),
    (#"{"resize":[640,480]}"#, [0x83, 2, 0x19, 2, 128, 0x19, 1, 224]),
    (
      #"{"place":{"at":{"x":1.0},"key":"AQI=","note":"n","sizes":{"-1":true},"tags":["t"]}}"#,
      [
        0x86, 3, 0xa1, 1, 0xf9, 0x3c, 0, 0x81, 0x61, 0x74, 0xa1, 0x20, 0xf5, 0x42, 1, 2, 0x61, 0x6e,
      ]
    ),
  ])
  func `an action of any schema can be sent as logs show it`(
    _ text: String, _ payload: [UInt8]
  ) throws {
    #expect(try ActionJSON.payload(of: json(text), schema: Self.typed) == payload)
    let form = try named(payload, Self.typed)
    #expect(try ActionJSON.payload(of: form, schema: Self.typed) == payload)
  }

  @Test func `every equivalent way to write an action gives the same payload`() throws {
    func payload(_ text: String) throws -> [UInt8] {
      try ActionJSON.payload(of: json(text), schema: Self.typed)
    }
    #expect(try payload(#"{"reset":{}}"#) == [0])
    #expect(try payload(#"{"reset":null}"#) == [0])
    let place = #"{"place":{"at":{"x":1,"label":null},"key":"","sizes":{},"tags":[],"note":null}}"#
    #expect(
      try payload(place) == [0x86, 3, 0xa2, 1, 0xf9, 0x3c, 0, 2, 0xf7, 0x80, 0xa0, 0x40, 0xf7])
    // A newer peer's fields and optionals that were left out.
    let short: [UInt8] = [0x85, 3, 0xa2, 1, 0xf9, 0x3c, 0, 9, 0x80, 0x80, 0xa0, 0x40]
    let long: [UInt8] = [0x87] + short.dropFirst() + [0xf7, 0x81, 1]
    for payload in [short, long] {
      let form = try named(payload, Self.typed)
      #expect(
        JSON.text(form, sortedKeys: true)
          == #"{"place":{"at":{"x":1.0},"key":{"$bytes":""},"sizes":{},"tags":[]}}"#)
    }
  }

  @Test(arguments: [
    (
      #"{"incr": {}}"#,
      "there is no action \"incr\"; there are: append, copy, increment, insert, merge, move, "
        + "remove, replace, set, test, transaction"
    ),
    (#""set""#, "\"set\" needs its fields: {\"set\": …} with path, value"),
    (#"{"set": {"value": 1}}"#, "set: the field \"path\", a JSON Pointer, is missing"),
    (
      #"{"set": {"path": "a", "value": 1}}"#,
      "set.path: \"a\" is no JSON Pointer: it is empty or begins with '/', and writes '~' as ~0"
    ),
    (#"{"set": {"path": 1, "value": 1}}"#, "set.path: expected a JSON Pointer, got 1"),
    (
      #"{"set": {"path": "", "val": 1}}"#,
      "set: there is no field \"val\"; there are: path, value"
    ),
    (#"{"set": 1}"#, "set: expected an object of fields (there are: path, value), got 1"),
    (#"{"set": {}, "remove": {}}"#, "an action is one name with its fields, not an object of 2"),
    ("1", "an action is \"name\" or {\"name\": fields}, not 1"),
    (
      #"{"transaction": {"actions": [{"remove": {"path": ""}}, {"remove": {"path": null}}]}}"#,
      "transaction.actions.1.remove.path: expected a JSON Pointer, got null"
    ),
  ])
  func `an error names the place and the alternatives`(
    _ text: String, _ message: String
  ) throws {
    let value = try json(text)
    let error = #expect(throws: ActionJSONError.self) {
      try ActionJSON.payload(of: value, schema: Self.document)
    }
    #expect(error?.description == message)
  }

  @Test func `random actions can be sent as logs show them`() throws {
    var random = SeededGenerator(9)
    let root = random.value(depth: 4)
    for _ in 0..<300 {
      let action = random.action(in: root)
      let form = try named(payload(action), Self.document)
      let text = JSON.text(form)
      let payload = try ActionJSON.payload(
        of: JSON.parse(text, tagged: true), schema: Self.document)
      let again = try named(payload, Self.document)
      // An amount of 1 may be left out, so the forms are compared once both have it.
      let second = try ActionJSON.payload(of: again, schema: Self.document)
      #expect(try decodedAction(second) == decodedAction(payload))
    }
  }
}
