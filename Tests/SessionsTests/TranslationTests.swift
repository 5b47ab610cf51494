import CBOR
import Schemas
import Testing
import Values

@Suite struct TranslationTests {
  static let first = Schema(state: First.State.self) { _ in .value }
  static let second = Schema(state: Second.State.self) { _ in .value }

  /// Changes a state at random.
  static func write(_ state: inout First.State, _ random: inout SplitMix64) {
    func todo() -> First.Todo {
      First.Todo(title: "t\(random.next() % 5)", isDone: random.next().isMultiple(of: 2))
    }
    let key = Int(random.next() % 30) - 5
    switch random.next() % 12 {
    case 0: state.todos.append(todo())
    case 1: state.todos.insert(todo(), at: Int(random.next() % UInt64(state.todos.count + 1)))
    case 2 where !state.todos.isEmpty:
      state.todos.remove(at: Int(random.next() % UInt64(state.todos.count)))
    case 3 where !state.todos.isEmpty:
      state.todos[Int(random.next() % UInt64(state.todos.count))].isDone.toggle()
    case 4: state.note = random.next().isMultiple(of: 2) ? nil : "n\(key)"
    case 5: state.filter = [.all, .named("f\(key)"), .unknown][Int(random.next() % 3)]
    case 6: state.counts["k\(key)"] = random.next().isMultiple(of: 3) ? nil : key
    case 7: state.byNumber[key] = random.next().isMultiple(of: 3) ? nil : todo()
    case 8: state.byNumber[key]?.title += "!"
    case 9: state.old += 1
    case 10: state.todos = random.next().isMultiple(of: 2) ? [] : [todo(), todo()]
    case 11: state.counts = ["a": key]
    default: break
    }
  }

  static func value<T: Synchronizable>(_ bytes: [UInt8], as type: T.Type) throws -> T {
    try CBORDecoder.read(bytes, depth: 256) { decoder throws(CBORError) in
      try T(from: &decoder, seed: .unseeded)
    }
  }

  static func translated(
    _ bytes: [UInt8], by translation: Translation, at path: Path = .root
  ) throws -> [UInt8] {
    try CBORDecoder.read(bytes) { decoder throws(CBORError) in
      var encoder = CBOREncoder()
      try translation.value(at: translation.place(at: path), from: &decoder, into: &encoder)
      return encoder.bytes
    }
  }

  /// Applies a translated patch; false when no patch expresses it.
  static func apply<T: Synchronizable>(
    _ patch: [UInt8], by translation: Translation, at path: Path = .root, to value: inout T
  ) throws -> Bool {
    let result = try CBORDecoder.read(patch) { decoder throws(CBORError) -> [UInt8]? in
      var encoder = CBOREncoder()
      let start = decoder
      let place = translation.place(at: path)
      if try translation.patch(at: place, from: &decoder, into: &encoder) { return encoder.bytes }
      decoder = start
      try decoder.skip()
      return nil
    }
    guard let result else { return false }
    var copy = value
    try CBORDecoder.read(result, depth: 256) { decoder throws(CBORError) in
      try copy.apply(patch: &decoder, seed: .unseeded)
    }
    value = copy
    return true
  }

  // MARK: The law

  /// Follows random changes by translated patches, and compares with translated values. Returns how
  /// many changes no patch could express.
  private func follow<T: Synchronizable>(
    _ type: T.Type, by translation: Translation, seed: UInt64
  ) throws -> Int {
    var random = SplitMix64(seed)
    var state = First.State()
    var mirror = try Self.value(
      Self.translated(encoded { state.encode(into: &$0) }, by: translation), as: T.self)
    var skipped = 0
    for _ in 0..<400 {
      let old = state
      for _ in 0...(random.next() % 3) { Self.write(&state, &random) }
      let patch = encoded { _ = state.encodeDifference(from: old, into: &$0) }
      if patch.isEmpty { continue }
      let whole = try Self.value(
        Self.translated(encoded { state.encode(into: &$0) }, by: translation), as: T.self)
      if try !Self.apply(patch, by: translation, to: &mirror) {
        skipped += 1
        mirror = whole
      }
      #expect(mirror.isSame(as: whole))
    }
    return skipped
  }

  @Test(arguments: [1 as UInt64, 2, 3])
  func `a translated patch of a value is the patch of the translated value`(seed: UInt64) throws {
    let numbered = try Translation(from: Self.first, to: .schema(Self.second), root: .state)
    // A removed note becomes the later build's default, which no patch can express.
    #expect(try follow(Second.State.self, by: numbered, seed: seed) > 0)
    let named = try Translation(from: Self.first, to: .names, root: .state)
    #expect(try follow(Value.self, by: named, seed: seed) == 0)
  }

  @Test func `truncated or changed bytes are refused or translated, and never crash`() throws {
    var random = SplitMix64(4)
    var state = First.State()
    for _ in 0..<60 { Self.write(&state, &random) }
    let old = state
    for _ in 0..<10 { Self.write(&state, &random) }
    let whole = encoded { state.encode(into: &$0) }
    let patch = encoded { _ = state.encodeDifference(from: old, into: &$0) }
    let targets: [Translation.Target] = [.names, .schema(Self.second), .schema(Self.first)]
    for target in targets {
      let translation = try Translation(from: Self.first, to: target, root: .state)
      for count in 0..<whole.count {
        #expect(throws: CBORError.self) {
          try Self.translated(Array(whole[..<count]), by: translation)
        }
      }
      for bytes in [whole, patch] {
        for _ in 0..<3000 {
          var changed = bytes
          changed[Int(random.next() % UInt64(changed.count))] = UInt8(random.next() & 0xff)
          _ = try? Self.translated(changed, by: translation)
          var mirror = Value.null
          _ = try? Self.apply(changed, by: translation, to: &mirror)
        }
      }
    }
  }

  // MARK: Names

  @Test func `a state is translated to names`() throws {
    let state = First.State(
      todos: [.init(title: "milk", isDone: true)], filter: .named("x"), counts: ["a": 1],
      byNumber: [-7: .init(title: "t")], old: 2)
    let named = try Translation(from: Self.first, to: .names, root: .state)
    #expect(!named.isIdentity && named.isLossless)
    let whole = encoded { state.encode(into: &$0) }
    #expect(
      try Self.value(Self.translated(whole, by: named), as: Value.self) == [
        "todos": [["title": "milk", "isDone": true]], "filter": ["named": "x"],
        "counts": ["a": 1], "byNumber": ["-7": ["title": "t", "isDone": false]], "old": 2,
      ])
  }

  @Test func `cases and absent values have the same form as in the JSON of actions`() throws {
    let schema = Schema(
      state: .array(.type("E")), action: .value,
      types: [
        "E": .enumeration([
          .init(0, "plain"), .init(1, "one", [.init(0, "", .optional(.integer))]),
          .init(2, "two", [.init(0, "_0", .path), .init(1, "_1", .optional(.text))]),
          .init(3, "named", [.init(0, "a", .optional(.bytes)), .init(1, "e", .type("E"))]),
          .init(4, "list", [.init(0, "_0", .array(.optional(.bool)))]),
        ])
      ])
    let named = try Translation(from: schema, to: .names, root: .state)
    let bytes: [UInt8] = [
      0x88, 0x00, 0x82, 1, 5, 0x81, 1, 0x82, 2, 0x82, 0x61, 0x61, 7,
      0x84, 3, 0xf7, 0x82, 1, 6, 0x00, 0x83, 3, 0x41, 9, 0, 0x82, 4, 0x82, 0xf5, 0xf7, 0x00,
    ]
    #expect(
      try Self.value(Self.translated(bytes, by: named), as: Value.self) == [
        "plain", ["one": 5], ["one": nil], ["two": ["/a/7", nil]], ["named": ["e": ["one": 6]]],
        ["named": ["a": .bytes([9]), "e": "plain"]], ["list": [true, nil]], "plain",
      ])
    var mirror: Value = ["plain"]
    #expect(try Self.apply([0x82, 0x80, 0xa1, 0, 0x81, 0x82, 1, 5], by: named, to: &mirror))
    #expect(mirror == [["one": 5]])
    #expect(try Self.apply([0x82, 0x80, 0xa1, 0, 0], by: named, to: &mirror))
    #expect(mirror == ["plain"])
  }

  @Test func `a document by names is unchanged`() throws {
    let schema = Schema(state: .value, action: .value)
    #expect(try Translation(from: schema, to: .names, root: .state).isIdentity)
  }

  // MARK: Numbers

  @Test func `equal numbers and names need no translation`() throws {
    let same = try Translation(from: Self.first, to: .schema(Self.first), root: .state)
    #expect(same.isIdentity && same.isLossless)
    let other = try Translation(from: Self.first, to: .schema(Self.second), root: .state)
    #expect(!other.isIdentity && !other.isLossless)
  }

  @Test func `a field that the other build added has its default, one that it dropped is removed`()
    throws
  {
    let state = First.State(
      todos: [.init(title: "milk", isDone: true)], note: "n", filter: .unknown, old: 9)
    let translation = try Translation(from: Self.first, to: .schema(Self.second), root: .state)
    let bytes = try Self.translated(encoded { state.encode(into: &$0) }, by: translation)
    #expect(
      try Self.value(bytes, as: Second.State.self)
        == Second.State(
          filter: .done, todos: [.init(priority: 3, title: "milk", isDone: true)], note: "n"))
  }

  @Test func `an unknown case becomes the fallback, or an error`() throws {
    var source = Self.second
    let state = Second.State(filter: .tagged(name: "x", isExact: true))
    let back = try Translation(from: source, to: .schema(Self.first), root: .state)
    let bytes = encoded { state.encode(into: &$0) }
    #expect(
      try Self.value(Self.translated(bytes, by: back), as: First.State.self).filter == .unknown)
    source.types["Filter"] = .enumeration([.init(1, "all")])
    let strict = try Translation(from: Self.second, to: .schema(source), root: .state)
    let error = #expect(throws: CBORError.self) { try Self.translated(bytes, by: strict) }
    #expect(error?.kind == .unknownCase(3))
  }

  @Test func `the values of a case are reordered by their names`() throws {
    func schema(_ fields: [Schema.Field]) -> Schema {
      Schema(state: .type("E"), action: .value, types: ["E": .enumeration([.init(1, "e", fields)])])
    }
    let source = schema([.init(0, "a", .integer), .init(1, "b", .text), .init(2, "c", .bool)])
    let target = schema([
      .init(0, "d", .optional(.text)), .init(1, "c", .bool), .init(2, "a", .integer),
      .init(3, "e", .optional(.text)),
    ])
    let translation = try Translation(from: source, to: .schema(target), root: .state)
    #expect(
      try Self.translated([0x84, 1, 5, 0x61, 0x78, 0xf5], by: translation)
        == [0x84, 1, 0xf7, 0xf5, 5])
  }

  @Test func `a recursive type is translated to any depth`() throws {
    func schema(_ number: Int) -> Schema {
      let node = Schema.Definition.structure([.init(number, "next", .optional(.type("N")))])
      return Schema(state: .type("N"), action: .value, types: ["N": node])
    }
    let translation = try Translation(from: schema(1), to: .schema(schema(2)), root: .state)
    #expect(
      try Self.translated([0xa1, 1, 0xa1, 1, 0xa0], by: translation) == [0xa1, 2, 0xa1, 2, 0xa0])
    let deep = (0..<400).map { $0.isMultiple(of: 2) ? 0xa1 : 1 as UInt8 }
    #expect(throws: CBORError.self) { try Self.translated(deep + [0xa0], by: translation) }
  }

  // MARK: Paths

  @Test func `paths by names and by numbers lead to the same place`() throws {
    let named = try Translation(from: Self.first, to: .names, root: .state)
    #expect(named.sourcePath(for: ["counts", "a"]) == [.integer(4), "a"])
    #expect(
      named.sourcePath(for: ["byNumber", "-7", "title"])
        == [.integer(5), .integer(-7), .integer(1)])
    #expect(named.sourcePath(for: ["byNumber", "07"]) == nil)
    #expect(named.sourcePath(for: ["tods"]) == nil)
    #expect(named.sourcePath(for: ["todos", "0"]) == nil)
    let numbered = try Translation(from: Self.first, to: .schema(Self.second), root: .state)
    #expect(
      numbered.sourcePath(for: [.integer(7), .integer(3), .integer(2)])
        == [.integer(5), .integer(3), .integer(1)])
    #expect(numbered.sourcePath(for: [.integer(9)]) == nil)
    #expect(numbered.place(at: [.integer(9)], number: 4).sourcePath == [.integer(-1), .integer(4)])
  }

  @Test func `a part is translated like the whole`() throws {
    let named = try Translation(from: Self.first, to: .names, root: .state)
    let path: Path = ["byNumber", "3"]
    let todo = encoded { First.Todo(title: "x").encode(into: &$0) }
    #expect(
      try Self.value(Self.translated(todo, by: named, at: path), as: Value.self)
        == ["title": "x", "isDone": false])
    #expect(try Self.translated([0xf7], by: named, at: path) == [0xf7])
    var part: Value? = ["title": "x"]
    #expect(try Self.apply([0xa1, 1, 0x61, 0x79], by: named, at: path, to: &part))
    #expect(part == ["title": "y"])
    #expect(try Self.apply([0xf7], by: named, at: path, to: &part))
    #expect(part == nil)
  }

  // MARK: Mismatches

  @Test func `a mismatch names every place, with both types`() {
    func schema(_ title: Schema.Kind, _ more: [Schema.Field] = []) -> Schema {
      Schema(
        state: .type("S"), action: .value,
        types: [
          "S": .structure([.init(1, "todos", .array(.type("T")))] + more),
          "T": .structure([.init(1, "title", title)]),
        ])
    }
    func mismatch(_ source: Schema, _ target: Schema, _ root: Translation.Root) -> String? {
      let error = #expect(throws: SchemaMismatch.self) {
        try Translation(from: source, to: .schema(target), root: root)
      }
      return error?.description
    }
    #expect(
      mismatch(schema(.text), schema(.integer), .state)
        == "state.todos[].title is text in the daemon and integer here")
    #expect(
      mismatch(schema(.optional(.text)), schema(.text), .state)
        == "state.todos[].title is optional text in the daemon and text here")
    #expect(
      mismatch(schema(.text), schema(.type("S"), [.init(2, "n", .unsigned)]), .state)
        == "state.n is missing in the daemon, and unsigned integer here; "
        + "state.todos[].title is text in the daemon and struct S here")
    var (ours, theirs) = (schema(.text), schema(.integer))
    (ours.action, theirs.action) = (.type("T"), .type("T"))
    #expect(
      mismatch(ours, theirs, .action) == "action.title is text here and integer in the daemon")
  }

  @Test func `a value may become optional, and an action may lack a value that the daemon added`()
    throws
  {
    func schema(_ fields: [Schema.Field]) -> Schema {
      Schema(state: .type("S"), action: .type("S"), types: ["S": .structure(fields)])
    }
    let old = schema([.init(1, "a", .text)])
    let new = schema([.init(1, "a", .optional(.text)), .init(2, "b", .optional(.text))])
    #expect(throws: Never.self) { try Translation(from: old, to: .schema(new), root: .state) }
    let later = schema([.init(1, "a", .text), .init(2, "b", .text)])
    #expect(throws: Never.self) { try Translation(from: old, to: .schema(later), root: .action) }
    #expect(throws: SchemaMismatch.self) {
      try Translation(from: old, to: .schema(later), root: .state)
    }
  }
}
