import Lockstep
import Testing

@Suite struct ActionTests {
  @Test func `a case is encoded as its number, with its values if it has any`() throws {
    let expected: [(Todos.Action, String)] = [
      (.increment, "00"), (.set(7), "820107"), (.rename(id: 1, "b"), "8402016162f7"),
      (.rename(id: 1, "b", note: "c"), "84020161626163"), (.todo(3, .toggle), "83030300"),
      (.child(.tag("t")), "820482016174"), (.tabs([.home]), "83058164686f6d65f5"),
      (.unknown, "06"),
    ]
    for (action, form) in expected {
      #expect(hex(bytes(action)) == form)
      #expect(try decoded(Todos.Action.self, bytes(action)) == action)
    }
  }

  @Test func `values missing at the end have their default, and extra ones are skipped`() throws {
    #expect(try decoded(Todos.Action.self, unhex("83 02 01 61 62")) == .rename(id: 1, "b"))
    #expect(try decoded(Todos.Action.self, unhex("82 05 80")) == .tabs([]))
    #expect(try decoded(Todos.Action.self, unhex("84 01 07 09 a0")) == .set(7))
    #expect(try decoded(Todos.Action.self, unhex("81 00")) == .increment)
    let error = CBORError(.notAllowed("Todos.Action.rename has no field \"_1\""), at: 0)
    #expect(throws: error) { try decoded(Todos.Action.self, unhex("82 02 01")) }
    #expect(throws: CBORError.self) { try decoded(Todos.Action.self, unhex("80")) }
  }

  @Test func `an unknown case is the fallback, else an error`() throws {
    #expect(try decoded(Todos.Action.self, unhex("18 28")) == .unknown)
    #expect(try decoded(Todos.Action.self, unhex("82 18 28 a1 01 02")) == .unknown)
    #expect(throws: CBORError(.unknownCase(9), at: 0)) {
      try decoded(TodoAction.self, unhex("82 09 00"))
    }
  }

  @Test func `the name of an action is followed by the name of the action it carries`() {
    #expect(Todos.Action.increment.name == "increment")
    #expect(Todos.Action.child(.tag("x")).name == "child.tag")
    #expect(Todos.Action.todo(1, .toggle).name == "todo.toggle")
    #expect(Todos.Action.set(1).name == "set")
  }

  /// The macro cannot see the type behind an alias.
  typealias Gesture = TodoAction

  @Action enum Spelled: Equatable {
    case row(Int, Gesture)
    case perhaps(id: Int, Gesture?)
    case one(Gesture)
    case opened(Int, Tab)
    case named(Int, String)
  }

  @Action enum Around<Child: SynchronizableAction & Equatable>: Equatable {
    case child(Int, Child)
  }

  @Test func `the name of a carried action is included, however its type is spelled`() {
    #expect(Spelled.row(1, .toggle).name == "row.toggle")
    #expect(Spelled.one(.toggle).name == "one.toggle")
    #expect(Spelled.perhaps(id: 1, .tag("a")).name == "perhaps.tag")
    #expect(Spelled.perhaps(id: 1, nil).name == "perhaps")
    #expect(Around<TodoAction>.child(1, .toggle).name == "child.toggle")
    #expect(Around<Spelled>.child(1, .row(2, .toggle)).name == "child.row.toggle")
    // These carry no action.
    #expect(Spelled.opened(1, .home).name == "opened" && Spelled.named(1, "a").name == "named")
  }

  @Test func `every case has a path`() {
    let paths = Todos.Action.allCasePaths
    #expect(paths.set.embed(3) == .set(3))
    #expect(paths.increment.embed(()) == .increment)
    #expect(paths.rename.embed((id: 1, "x", note: nil)) == .rename(id: 1, "x"))
    #expect(paths.rename.extract(from: .rename(id: 4, "x"))?.id == 4)
    #expect(Todos.Action.child(.toggle)[case: \.child] == .toggle)
    #expect(Todos.Action.increment[case: \.child] == nil)
    #expect(Todos.Action.increment.is(\.increment) && !Todos.Action.increment.is(\.set))
  }

  @Test func `a case inside of a case has a path, too`() {
    let path: CaseKeyPath<Todos.Action, String> = \.child.tag
    let paths = Todos.Action.allCasePaths[keyPath: path]
    #expect(paths.embed("a") == .child(.tag("a")))
    #expect(Todos.Action.child(.tag("b"))[case: path] == "b")
    #expect(Todos.Action.child(.toggle)[case: path] == nil)
    #expect(Todos.Action.increment[case: \.child.tag] == nil)
    #expect(Todos.Action.child(.toggle).is(\.child.toggle))
  }

  @Test func `an enumeration is replaced whole, and compared by its bytes`() throws {
    var composed = Screen.detail(Todo(title: "\u{e9}"), .home)
    let decomposed = Screen.detail(Todo(title: "e\u{301}"), .home)
    #expect(!composed.isSame(as: decomposed))
    try expectLaw(from: composed, to: decomposed)
    try expectLaw(from: Screen.none, to: composed)
    try expectLaw(from: composed, to: .none)
    try expectLaw(from: composed, to: .stack(.list(["a": 1]), over: composed))
    try expectLaw(from: Published.Action.open, to: .loaded(.failure(.timeout)))
    try expectLaw(from: Published.Action.loaded(.success(1)), to: .loaded(.failure(.timeout)))
    #expect(hex(bytes(Published.Action.loaded(.failure(.timeout)))) == "8201820101")
    try apply(difference(from: composed, to: .none), to: &composed)
    #expect(composed == .none)
  }

  @Test func `a schema has cases, positional fields, and names`() {
    var schema = SchemaBuilder()
    #expect(Todos.Action.schemaKind(in: &schema) == .type("Todos.Action"))
    #expect(
      schema.types["Todos.Action"]
        == .enumeration([
          .init(0, "increment"), .init(1, "set", [.init(1, "_0", .integer)]),
          .init(
            2, "rename",
            [
              .init(1, "id", .integer), .init(2, "_1", .text),
              .init(3, "note", .optional(.text)),
            ]),
          .init(3, "todo", [.init(1, "_0", .integer), .init(2, "_1", .type("TodoAction"))]),
          .init(4, "child", [.init(1, "_0", .type("TodoAction"))]),
          .init(5, "tabs", [.init(1, "_0", .array(.text)), .init(2, "default", .bool)]),
          .init(6, "unknown"),
        ]))
  }
}
