import CBOR
import Documents
import Lockstep
import Testing
import Values

@Suite struct DocumentFeatureTests {
  // MARK: set

  @Test func `set puts, replaces and appends`() throws {
    #expect(try result(.set(pointer("/a"), 1), on: "{}") == #"{"a":1}"#)
    #expect(try result(.set(pointer("/a"), 2), on: #"{"a":1}"#) == #"{"a":2}"#)
    #expect(try result(.set(pointer("/0"), 9), on: "[1,2]") == "[9,2]")
    #expect(try result(.set(pointer("/2"), 9), on: "[1,2]") == "[1,2,9]")
    #expect(try result(.set(pointer("/-"), 9), on: "[1,2]") == "[1,2,9]")
    #expect(try result(.set([.integer(1)], 9), on: "[1,2]") == "[1,9]")
    #expect(try result(.set([], [1]), on: "{}") == "[1]")
  }

  @Test(arguments: [
    ("/a/b/c/d", #"{"a":{"b":{}}}"#, "the object at /a/b has no member \"c\" (at /a/b/c/d)"),
    ("/x/y", "{}", "the object at the root has no member \"x\" (at /x/y)"),
    (
      "/a/b", #"{"a":1}"#,
      "the number at /a is no container, so it has no \"b\""
    ),
    ("/a/3", #"{"a":[1]}"#, "the array at /a has 1 element; there is no index 3 (at /a/3)"),
    (
      "/01", "[1,2]",
      "\"01\" is no index of the array at the root: write digits without a leading zero, or "
        + "\"-\" for the end (at /01)"
    ),
    (
      "/-/x", "[1,2]",
      "the array at the root has 2 elements, and \"-\" is the place behind the last (at /-/x)"
    ),
  ])
  func `the error for a missing parent says how far the path exists`(
    _ path: String, _ text: String, _ message: String
  ) throws {
    let rejection = try rejection(.set(pointer(path), 1), on: text)
    #expect(rejection?.code == .badPath)
    #expect(rejection?.description == message)
  }

  @Test func `numbers index arrays only`() throws {
    let rejection = try rejection(.set([.integer(0)], 1), on: #"{"0":1}"#)
    #expect(
      rejection?.message
        == "the object at the root has members with names; the number 0 is none")
    #expect(try DocumentFeatureTests.code(.remove([.integer(-1)]), "[1]") == .badPath)
  }

  @Test func `a long name is cut in the message`() throws {
    let name = String(repeating: "é", count: 10_000)
    let rejection = try rejection(.remove([.text(name)]), on: "{}")
    #expect((rejection?.message.utf8.count ?? 0) < 300)
  }

  static func code(_ action: DocumentAction, _ text: String) throws -> Rejection.Code? {
    try rejection(action, on: text)?.code
  }

  // MARK: increment

  @Test(arguments: [
    ("1", "1", "2"), ("-1", "1", "0"), ("1", "1.5", "2.5"), ("1.5", "1", "2.5"),
    ("1", "0.0", "1.0"),
    ("9223372036854775807", "1", "9223372036854775808"),
    ("9223372036854775808", "-1", "9223372036854775807"),
    ("18446744073709551614", "1", "18446744073709551615"),
    ("18446744073709551615", "-9223372036854775808", "9223372036854775807"),
    ("-9223372036854775807", "-1", "-9223372036854775808"),
    ("-9223372036854775808", "18446744073709551615", "9223372036854775807"),
  ])
  func `integers add exactly, and with a double as doubles`(
    _ before: String, _ amount: String, _ after: String
  ) throws {
    let text = try result(.increment(pointer("/n"), by: json(amount)), on: #"{"n":\#(before)}"#)
    #expect(text == #"{"n":\#(after)}"#)
    let element = try result(.increment(pointer("/0"), by: json(amount)), on: "[\(before)]")
    #expect(element == "[\(after)]")
    #expect(try result(.increment([], by: json(amount)), on: before) == after)
  }

  @Test func `an absent member counts as 0`() throws {
    #expect(try result(.increment(pointer("/n"), by: 5), on: "{}") == #"{"n":5}"#)
    #expect(try Self.code(.increment(pointer("/0"), by: 5), "[]") == .badPath)
    #expect(try Self.code(.increment(pointer("/-"), by: 5), "[]") == .badPath)
  }

  @Test(arguments: [
    (
      #"{"n":18446744073709551615}"#, "1", Rejection.Code.numberOutOfRange,
      "18446744073709551615 + 1 does not fit 64 bits"
    ),
    (
      #"{"n":-9223372036854775808}"#, "-1", .numberOutOfRange,
      "-9223372036854775808 + -1 does not fit 64 bits"
    ),
    (#"{"n":1e308}"#, "1e308", .numberOutOfRange, "1e+308 + 1e+308 is no finite number"),
    (
      #"{"n":"a"}"#, "1", .wrongType, "the string at /n is no number to add to: \"a\""
    ),
    (#"{"n":1}"#, "true", .wrongType, "cannot add true: it is a boolean, not a number"),
  ])
  func `a sum that is not representable is refused with both numbers`(
    _ text: String, _ amount: String, _ code: Rejection.Code, _ message: String
  ) throws {
    let rejection = try rejection(.increment(pointer("/n"), by: json(amount)), on: text)
    #expect(rejection?.code == code)
    #expect(rejection?.message == message)
  }

  // MARK: append, test, transaction

  @Test func `append creates an array where there is none`() throws {
    #expect(try result(.append(pointer("/a"), 1), on: "{}") == #"{"a":[1]}"#)
    #expect(try result(.append(pointer("/a"), 2), on: #"{"a":[1]}"#) == #"{"a":[1,2]}"#)
    #expect(try result(.append([], 2), on: "[1]") == "[1,2]")
    #expect(try Self.code(.append(pointer("/a"), 2), #"{"a":{}}"#) == .wrongType)
    #expect(try Self.code(.append(pointer("/0"), 2), "[]") == .badPath)
  }

  @Test func `a failed test says what it found`() throws {
    let rejection = try rejection(.test(pointer("/a"), "x"), on: #"{"a":[1,2]}"#)
    #expect(rejection?.code == .testFailed)
    #expect(rejection?.description == "expected \"x\", found an array of 2 (at /a)")
  }

  @Test(arguments: [
    (#"{"b":1,"c":{"x":[1,2,3]}}"#, #"{"b":1,"c":{"x":[1,2,4]}}"#, "/a/c/x/2: expected 4, found 3"),
    (#"{"b":1,"a":1}"#, #"{"b":2,"a":2}"#, "/a/a: expected 2, found 1"),
    (#"{"b":1}"#, #"{"b":1,"a":[]}"#, "/a/a: expected an array of 0, found nothing"),
    (#"{"b":1,"a":"x"}"#, #"{"b":1}"#, #"/a/a: expected nothing, found "x""#),
    ("[1,2]", "[1,2,null]", "/a/2: expected null, found nothing"),
    ("[1,2,{}]", "[1,2]", "/a/2: expected nothing, found an object of 0"),
    ("[[1],[2.0,{}]]", "[[1.0],[2,[]]]", "/a/1/1: expected an array of 0, found an object of 0"),
  ]) func `a failed test says where the first difference is`(
    _ found: String, _ expected: String, _ says: String
  ) throws {
    let document = #"{"a":\#(found)}"#
    let failed = try rejection(.test(pointer("/a"), json(expected)), on: document)
    #expect(failed?.code == .testFailed)
    #expect(failed?.message == "the first difference is at \(says)")
    // The path is that of the test: the message quotes only values that the test was allowed to
    // read.
    #expect(failed?.path == ["a"])
    #expect(try rejection(.test(pointer("/a"), json(found)), on: document) == nil)
  }

  @Test func `a failed test says where long texts and bytes differ`() throws {
    let text = String(repeating: "é", count: 500)
    var document = Document(["a": .text(text + "x"), "b": [1, 2]], seed: testSeed)
    func message(_ value: Value, at path: Path) -> String? {
      #expect(throws: Rejection.self) { try document.test(value, at: path) }?.message
    }
    let beginning = String(repeating: "é", count: 60)
    #expect(
      message(.text(text + "y"), at: ["a"])
        == "expected \"\(beginning)…\", found another that differs from character 500 on")
    try document.set(.bytes([1, 2, 3]), at: ["b"])
    #expect(
      message(.bytes([1, 2, 4]), at: ["b"])
        == "expected 3 bytes, found another that differs from byte 2 on")
  }

  @Test func `a failed test costs the size of its operand, not of the document`() throws {
    let entries = (0..<200_000).map { ("\($0)", Value.integer(0)) }
    let large = Value.object(TrieMap(seed: testSeed, uniqueKeysWithValues: entries))
    let document = Document(["a": large], seed: testSeed)
    let clock = ContinuousClock()
    let whole = clock.measure {
      #expect(throws: Never.self) { try document.test(large, at: ["a"]) }
    }
    let one = clock.measure {
      for _ in 0..<10 {
        #expect(throws: Rejection.self) { try document.test(["7": 0], at: ["a"]) }
      }
    }
    #expect(one < whole || one < .milliseconds(5), "\(one) against \(whole)")
  }

  @Test func `a transaction names the item that failed, however deep`() throws {
    let action = DocumentAction.transaction([
      .set([.text("a")], 1),
      .transaction([.increment([.text("a")], by: 1), .remove([.text("b")])]),
    ])
    let rejection = try rejection(action, on: "{}")
    #expect(rejection?.code == .badPath)
    #expect(
      rejection?.description
        == "transaction[1].transaction[1] (remove): the object at the root has no member \"b\" "
        + "(at /b)")
  }

  @Test func `a transaction sees its own changes`() throws {
    let action = DocumentAction.transaction([
      .set([.text("a")], [1]), .insert([.text("a"), .integer(0)], 0),
      .test([.text("a")], [0, 1]), .transaction([]), .move(from: [.text("a")], to: [.text("b")]),
    ])
    #expect(try result(action, on: "{}") == #"{"b":[0,1]}"#)
  }

  // MARK: Limits

  @Test func `a document nests no deeper than the limit`() throws {
    var limits = DocumentFeature.Limits()
    limits.maxDepth = 4
    var document = try document(#"{"a":{"b":{}},"l":[{}]}"#)
    try reduce(.set(pointer("/a/b/c"), [:]), into: &document, limits: limits)
    func expectLimit(_ action: DocumentAction) {
      var copy = document
      let error = #expect(throws: Rejection.self) {
        try reduce(action, into: &copy, limits: limits)
      }
      #expect(error?.code == .limit)
    }
    try expectLimit(.set(pointer("/a/b/c/d"), [:]))
    try expectLimit(.set(pointer("/a/b/c"), [[:]]))
    try expectLimit(.append(pointer("/a/b/l"), [:]))
    try expectLimit(.merge(pointer("/a"), json(#"{"b":{"c":{"d":{}}}}"#)))
    try expectLimit(.copy(from: pointer("/a"), to: pointer("/a/b/c/x")))
    try expectLimit(.insert(pointer("/l/0/x"), [:]))
    try reduce(.set(pointer("/a/b/c/d"), 1), into: &document, limits: limits)
    try reduce(.copy(from: pointer("/a/b/c"), to: pointer("/d")), into: &document, limits: limits)
  }

  @Test func `a patch at the deepest path fits the depth of a default decoder`() throws {
    for open in ["[", "{\"a\":"] {
      let isArray = open == "["
      let levels = isArray ? 50 : 100
      let text =
        String(repeating: open, count: levels - 1) + (isArray ? "[]" : "{}")
        + String(repeating: isArray ? "]" : "}", count: levels - 1)
      var document = Document(seed: testSeed)
      try reduce(.set([], json(text)), into: &document)
      #expect(try Self.code(.set([], json("[\(text)]")), "{}") == .limit)
      let keys = Array(repeating: isArray ? PathKey.integer(0) : .text("a"), count: levels - 1)
      let before = document
      try reduce(
        isArray ? .append(Path(keys), 1) : .set(Path(keys + [.text("x")]), 1), into: &document)
      var patch = CBOREncoder()
      #expect(document.encodeDifference(from: before, into: &patch))
      #expect(throws: Never.self) { try CBORItem(patch.bytes, depth: 110) }
    }
  }

  @Test func `a transaction holds no more actions than the limit`() throws {
    var limits = DocumentFeature.Limits()
    limits.maxActions = 5
    var document = Document(seed: testSeed)
    let three = DocumentAction.transaction([.set([.text("a")], 1), .set([.text("b")], 1)])
    #expect(throws: Rejection.self) {
      try reduce(.transaction([three, three]), into: &document, limits: limits)
    }
    try reduce(.transaction([three, .remove([.text("a")])]), into: &document, limits: limits)
  }

  @Test func `copies of one action add no more than the limit`() throws {
    var limits = DocumentFeature.Limits()
    limits.maxCopiedBytes = 70
    var document = Document(["a": ["b": "text"]], seed: testSeed)
    let copy = DocumentAction.copy(from: [.text("a")], to: [.text("c")])
    try reduce(copy, into: &document, limits: limits)
    #expect(throws: Rejection.self) {
      try reduce(.transaction([copy, copy, copy]), into: &document, limits: limits)
    }
  }

  @Test func `copies of the whole into itself do not outgrow memory`() throws {
    var document = Document(["a": 1], seed: testSeed)
    let copies = (0..<60).map { index in
      DocumentAction.copy(from: [], to: [.text(index % 2 == 0 ? "a" : "b")])
    }
    #expect(throws: Rejection.self) { try reduce(.transaction(copies), into: &document) }
    document.rollBack()
    #expect(document.root == ["a": 1])
  }

  @Test func `a store rolls a failed transaction back and sends nothing`() throws {
    var store = StoreCore(
      Document(seed: testSeed), reducer: DocumentFeature(), seed: testSeed)
    var patch = CBOREncoder()
    #expect(store.send(.set([.text("a")], [1]), patch: &patch) == .changed(1))
    patch = CBOREncoder()
    let failing = DocumentAction.transaction([.append([.text("a")], 2), .remove([.text("b")])])
    guard case .rejected = store.send(failing, patch: &patch) else {
      Issue.record("it was not rejected")
      return
    }
    #expect(patch.bytes.isEmpty)
    #expect(store.send(.set([.text("a")], [1]), patch: &patch) == .unchanged)
    #expect(store.state.root == ["a": [1]])
  }

  /// Each of these is rejected, takes long or is foreseen by the feature itself.
  @Test func `a stub takes every action at once, and does nothing`() throws {
    let many = Value.object(
      TrieMap(uniqueKeysWithValues: (0..<5000).map { ("\($0)", Value.integer(Int64($0))) }))
    var document = Document(["many": many, "n": 1])
    let (own, stub) = (DocumentFeature(), DocumentFeature(isStub: true))
    let actions: [DocumentAction] = [
      .set(["many"], [:]), .move(from: ["many"], to: ["other"]), .increment(["many"], by: 1),
      .transaction([.remove(["many"]), .remove(["absent"])]), .test(["n"], 2),
    ]
    #expect(actions.contains { own.takesLong($0, in: document) })
    #expect(actions.contains { own.foresee($0, in: document) != nil })
    for action in actions {
      #expect(!stub.takesLong(action, in: document))
      #expect(stub.foresee(action, in: document) == nil)
      _ = try stub.reduce(into: &document, action: action)
    }
    var encoder = CBOREncoder()
    let isChanged = document.settle(into: &encoder)
    #expect(!isChanged && encoder.bytes.isEmpty)
    #expect(document.root == ["many": many, "n": 1])
  }

  @Test func `the schema has the numbers of the protocol`() throws {
    let schema = DocumentFeature().schema
    guard case .enumeration(let cases)? = schema.types["Action"] else {
      Issue.record("no actions")
      return
    }
    let names = [
      "set", "merge", "remove", "increment", "append", "insert", "move", "copy", "test",
      "transaction", "replace",
    ]
    #expect(cases.map(\.name) == names)
    #expect(cases.map(\.id) == Array(0...10))
    var encoder = CBOREncoder()
    schema.encode(into: &encoder)
    let decoded = try CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      try Schema(from: &decoder)
    }
    #expect(decoded == schema)
  }
}
