import Lockstep
import Testing

@Suite struct ObservableStateTests {
  @Test func `fields are encoded by number, and absent ones are omitted`() throws {
    var state = Todos.State()
    #expect(hex(bytes(state)) == "a2000002a0")
    state.count = 5
    state.fact = "a"
    #expect(hex(bytes(state)) == "a3000501616102a0")
    #expect(try decoded(Todos.State.self, bytes(state)) == state)
  }

  @Test func `a patch has the changed fields, and the fields that became absent`() throws {
    let old = Todos.State()
    var new = old
    new.count = 5
    new.fact = "a"
    #expect(hex(difference(from: old, to: new)) == "a20005016161")
    #expect(hex(difference(from: new, to: old)) == "a2000001f7")
    var third = old
    third.todos[1] = Todo(title: "x")
    #expect(
      hex(difference(from: old, to: third)) == "a102a10181a3006178 01f40280".filter { $0 != " " })
    try expectLaw(from: old, to: new)
    try expectLaw(from: new, to: third)
    #expect(difference(from: old, to: old).isEmpty)
  }

  @Test
  func `fields come in any order, unknown ones are skipped, missing ones have defaults`() throws {
    let state = try decoded(Todos.State.self, unhex("a4 09 8101 02a0 01 6161 00 05"))
    #expect(state == Todos.State(count: 5, fact: "a"))
    #expect(try decoded(Todos.State.self, unhex("a0")) == Todos.State())
    #expect(try decoded(Todos.State.self, unhex("a1 01 f7")).fact == nil)
  }

  @Test func `a field without a default is required unless it is optional`() throws {
    let account = Account(id: 1, name: "n", nick: nil, badges: ["b"], motto: nil)
    #expect(hex(bytes(account)) == "a3000101616e03816162")
    #expect(try decoded(Account.self, bytes(account)) == account)
    let error = CBORError(.notAllowed("Account has no field \"name\""), at: 0)
    #expect(throws: error) { try decoded(Account.self, unhex("a2 00 01 03 80")) }
  }

  @Test func `a duplicate field is an error`() {
    #expect(throws: CBORError(.notAllowed("duplicate key"), at: 3)) {
      try decoded(Todos.State.self, unhex("a2 00 01 00 02"))
    }
  }

  @Test func `a patch changes constants, and leaves everything else unchanged`() throws {
    let old = Account(id: 1, name: "n", badges: ["b"], motto: nil)
    let new = Account(id: 2, name: "n", badges: ["b", "c"], motto: "m")
    try expectLaw(from: old, to: new)
    var mirror = old
    mirror.visits = 9
    try apply(difference(from: old, to: new), to: &mirror)
    #expect(mirror.id == 2 && mirror.badges == ["b", "c"] && mirror.motto == "m")
    #expect(mirror.visits == 9)
    mirror.adopt(seed: seed)
    #expect(mirror.badges.seed == seed)
  }

  @Test func `an ignored field is not encoded, and survives every patch`() throws {
    var state = Everything()
    state.cache["a"] = 1
    #expect(bytes(state) == bytes(Everything()))
    #expect(state.isSame(as: Everything()))
    #expect(difference(from: Everything(), to: state).isEmpty)
    var new = Everything()
    new.number = 8
    try apply(difference(from: Everything(), to: new), to: &state)
    #expect(state.number == 8 && state.cache == ["a": 1])
    var whole = CBOREncoder()
    Everything().encodeReplacement(into: &whole)
    try apply(whole.bytes, to: &state)
    #expect(state.number == 1 && state.cache == ["a": 1])
  }

  @Test func `fields have their numbers, names and key paths`() {
    #expect(
      Everything.fields.map(\.name) == [
        "number", "maybe", "nested", "other", "screen", "list", "bytes", "todos", "byTab", "tags",
        "array", "deep", "hidden", "alert", "progress", "cards",
      ])
    #expect(Everything.fields.map(\.number) == Array(0..<16))
    #expect(Everything.fields.filter(\.isEphemeral).map(\.name) == ["progress"])
    #expect(Everything.path(of: \.nested.fact) == [2, 1])
    #expect(Everything.path(of: \.$alert) == [13])
    #expect(Everything.path(of: \.double) == nil)
    #expect(Everything.path(of: \.cards) == [15] && Everything.path(of: \.cards.ids) == [15, 1])
    #expect(Everything.path(of: \.cards.rows) == [15, 0])
    #expect(Everything.path(of: \.cards.count) == nil)
    var changed = Everything()
    changed.alert = "!"
    changed.number = 2
    #expect(changed.changedFields(from: Everything()) == [0, 13])
    #expect(Empty.fields.isEmpty)
  }

  @Test func `only ephemeral fields are reset, in nested structs too`() {
    var state = Published(title: "t")
    state.draft = "d"
    state.inner.value = 2
    state.inner.isOpen = true
    state.resetEphemeral()
    #expect(state.title == "t" && state.draft == nil)
    #expect(state.inner.value == 2 && !state.inner.isOpen)
    var everything = Everything()
    everything.progress = 1
    everything.cache["a"] = 1
    everything.alert = "!"
    everything.resetEphemeral()
    #expect(everything.progress == 0.5 && everything.cache == ["a": 1])
    #expect(everything.$alert.count == 1)
  }

  @Test func `a type whose fields all have defaults has an initial value`() {
    #expect(Todos.State.initialValue == Todos.State())
    #expect(Published.initialValue?.title == "a")
    #expect(Account.initialValue == nil)
    #expect(Page<Int, String>.initialValue == Page())
  }

  @Test func `a pulse makes a patch of an equal assignment`() throws {
    var new = Everything()
    new.alert = nil
    #expect(difference(from: Everything(), to: new) == unhex("a1 0d a1 00 01"))
    try expectLaw(from: Everything(), to: new)
  }

  @Test func `a schema has every type by its full name`() throws {
    var schema = SchemaBuilder()
    #expect(Todos.State.schemaKind(in: &schema) == .type("Todos.State"))
    #expect(
      schema.types["Todos.State"]
        == .structure([
          .init(0, "count", .integer), .init(1, "fact", .optional(.text)),
          .init(2, "todos", .map(key: .integer, value: .type("Todo"))),
        ]))
    #expect(
      schema.types["Todo"]
        == .structure([
          .init(0, "title", .text), .init(1, "isDone", .bool),
          .init(2, "tags", .array(.text)), .init(3, "note", .optional(.text)),
        ]))
  }

  @Test func `generic types have a name for each set of arguments`() {
    var schema = SchemaBuilder()
    #expect(Page<Todo, Int>.schemaKind(in: &schema) == .type("Page<Todo, Int>"))
    #expect(Page<Int, Int>.schemaKind(in: &schema) == .type("Page<Int, Int>"))
    #expect(Loadable<[Int]>.schemaKind(in: &schema) == .type("Loadable<Array<Int>>"))
    #expect(
      schema.types["Page<Int, Int>"]
        == .structure([
          .init(0, "items", .array(.integer)), .init(1, "selected", .optional(.integer)),
          .init(2, "byKey", .map(key: .integer, value: .integer)),
        ]))
  }

  @Test func `recursive types terminate, in schemas too`() throws {
    var schema = SchemaBuilder()
    _ = Branch.schemaKind(in: &schema)
    _ = Screen.schemaKind(in: &schema)
    #expect(schema.types["Branch"] != nil && Branch.holdsCollections && Screen.holdsCollections)
    var tree = Branch(name: "a", children: [Branch(name: "b"), Branch(name: "c")])
    let old = tree
    tree.children[1].children.append(Branch(name: "d"))
    #expect(
      hex(difference(from: old, to: tree))
        == "a10182 80a1 01a10182 83 00 00 81 a2006164 0180 a0".filter { $0 != " " })
    try expectLaw(from: old, to: tree)
  }

  @Test func `a type knows whether it holds collections`() {
    #expect(!Published.Inner.holdsCollections && !Words.holdsCollections)
    #expect(!Published.Failure.holdsCollections && !Empty.holdsCollections)
    #expect(Todo.holdsCollections && Todos.State.holdsCollections && Everything.holdsCollections)
    #expect(!Loadable<Int>.holdsCollections && Loadable<SyncArray<Int>>.holdsCollections)
  }

  @Test func `reserved words can be names of fields and cases`() throws {
    let words = Words(default: 1, class: "c", a: 4, b: 5)
    #expect(
      Words.fields.map(\.name) == ["default", "class", "seed", "decoder", "digest", "a", "b"])
    #expect(try decoded(Words.self, bytes(words)) == words)
    #expect(WordAction.default.name == "default")
    #expect(WordAction.switch(in: 3)[case: \.switch] == 3)
  }

  @Test func `thirty fields are encoded in the order of their numbers`() throws {
    var new = Thirty()
    new.f1 = 1
    new.f23 = 2
    new.f24 = "t"
    new.f29 = 3
    #expect(hex(difference(from: Thirty(), to: new)) == "a40101170218186174181d03")
    try expectLaw(from: Thirty(), to: new)
    #expect(try decoded(Empty.self, bytes(Empty())) == Empty())
    try expectLaw(from: Empty(), to: Empty())
  }

  @Test func `a state adopts its seed in every collection`() {
    var state = Everything()
    state.screen = .stack(.none, over: .list(["a": 1]))
    state.todos = [Todo(tags: ["x"])]
    state.byTab = [.home: Todo(tags: ["y"])]
    state.nested.todos[1] = Todo(tags: ["z"])
    state.adopt(seed: seed)
    #expect(state.todos[0].tags.seed == seed && state.byTab[.home]?.tags.seed == seed)
    #expect(state.nested.todos.seed == seed && state.nested.todos[1]?.tags.seed == seed)
    #expect(state.screen[case: \.stack]?.over[case: \.list]?.seed == seed)
  }
}
