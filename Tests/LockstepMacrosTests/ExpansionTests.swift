import Testing

@Suite struct ExpansionTests {
  /// The lines of one member of an expansion, from the line that begins with `beginning` to the
  /// line that ends it.
  private func member(_ beginning: String, of source: String) -> [String] {
    let lines = expansion(of: source).text.split(separator: "\n", omittingEmptySubsequences: false)
    guard let first = lines.firstIndex(where: { $0.drop { $0 == " " }.hasPrefix(beginning) })
    else { return [] }
    let indent = lines[first].prefix { $0 == " " }
    let last = lines[first...].firstIndex { $0.hasPrefix(indent + "}") } ?? lines.endIndex - 1
    return lines[first...last].map { String($0.dropFirst(indent.count)) }
  }

  private let state = """
    struct Todos {
      @ObservableState struct State {
        var count = 0
        @Pulse var fact: String?
        var todos: SyncMap<Int, Todo>
        @Ephemeral var draft = ""
        @Ignored var cache = 0
        let id: Int
        let constant = 1
        var computed: Int { 1 }
      }
    }
    """

  @Test func `a struct conforms, and its fields are numbered in the order of declaration`() {
    #expect(expansion(of: state).text.contains("extension Todos.State: ObservableState {"))
    #expect(
      member("static let fields", of: state) == [
        "static let fields: [Lockstep.StateField<Self>] = {",
        "  var fields: [Lockstep.StateField<Self>] = []",
        "  fields.append(Lockstep.StateField(0, \"count\", \\Self.count))",
        "  fields.append(Lockstep.StateField(1, \"fact\", \\Self.$fact))",
        "  fields.append(Lockstep.StateField(2, \"todos\", \\Self.todos))",
        "  fields.append(Lockstep.StateField(3, \"draft\", \\Self.draft, isEphemeral: true))",
        "  fields.append(Lockstep.StateField(4, \"id\", \\Self.id))", "  return fields", "}()",
      ])
  }

  @Test func `every field is one statement, and types are never repeated`() {
    #expect(
      member("func encodeDifference", of: state) == [
        "func encodeDifference(from old: Self, into encoder: inout CBOR.CBOREncoder) -> Bool {",
        "  var patch = Values.PatchMap(in: &encoder)",
        "  Values.StructureCoding.difference(0, self.count, old.count, &patch, &encoder)",
        "  Values.StructureCoding.difference(1, self._fact, old._fact, &patch, &encoder)",
        "  Values.StructureCoding.difference(2, self.todos, old.todos, &patch, &encoder)",
        "  Values.StructureCoding.difference(3, self.draft, old.draft, &patch, &encoder)",
        "  Values.StructureCoding.difference(4, self.id, old.id, &patch, &encoder)",
        "  return patch.finish(&encoder)", "}",
      ])
    let text = expansion(of: state).text
    #expect(text.occurrences(of: "SyncMap<Int, Todo>") == 1)
  }

  @Test func `fields without an initial value are required, under the full name of the type`() {
    let text = expansion(of: state).text
    #expect(text.contains("required(_todos, \"Todos.State\", \"todos\", at: fields.start)"))
    #expect(text.contains("required(_id, \"Todos.State\", \"id\", at: fields.start)"))
    #expect(text.occurrences(of: "StructureCoding.required(") == 2)
  }

  @Test func `an ignored field keeps its value when the whole is replaced`() {
    #expect(
      member("mutating func apply", of: state)[1...4].contains("    value.cache = self.cache"))
    for name in ["func isSame", "func prefetchStorage", "func encode(", "init(from", "func digest"]
    {
      let lines = member(name, of: state)
      #expect(!lines.isEmpty && !lines.contains { $0.contains("cache") })
    }
  }

  @Test func `members are as visible as the type`() {
    let text = expansion(of: "@ObservableState public struct State {\n  var a = 1\n}").text
    for line in ["public func isSame", "public init(from", "public static let fields"] {
      #expect(text.contains(line))
    }
    let package = expansion(of: "@Action package enum Action {\n  case a\n}").text
    for line in ["package func isSame", "package struct AllCasePaths", "package var name"] {
      #expect(package.contains(line))
    }
  }

  @Test func `members of a type inside a private type are fileprivate`() {
    for level in ["private", "fileprivate"] {
      let feature = """
        \(level) struct Feature {
          @ObservableState public struct State { var a = 1 }
          @Action enum Action { case b }
        }
        """
      let text = expansion(of: feature).text
      for line in ["fileprivate func isSame", "fileprivate var name", "fileprivate init(from"] {
        #expect(text.contains(line))
      }
      #expect(!text.contains("public func") && !text.contains("public static"))
    }
  }

  @Test func `generic types have their arguments in their names, and no stored list of fields`() {
    let page = "@ObservableState struct Page<Item: Synchronizable> {\n  var items: [Item]\n}"
    #expect(expansion(of: page).text.contains("named: \"Page<\\(Item.self)>\""))
    #expect(member("static var fields", of: page).count == 5)
    let inside = "extension Page {\n  @ObservableState struct State {\n    var a = 1\n  }\n}"
    #expect(member("static var fields", of: inside).count == 5)
    #expect(expansion(of: inside).text.contains("named: \"Page.State\""))
  }

  private let action = """
    extension Todos {
      @Action enum Action {
        case increment, decrement
        case set(name: String, Int = 1)
        case child(Child.Action)
        @Fallback case other
      }
    }
    """

  @Test func `an enumeration conforms, and its members are inside it`() {
    let text = expansion(of: action).text
    #expect(
      text.contains(
        "extension Todos.Action: SynchronizableAction, SynchronizableScalar, CasePathable"))
    #expect(
      member("func encode", of: action) == [
        "func encode(into encoder: inout CBOR.CBOREncoder) {", "  switch self {",
        "  case .increment:", "    encoder.encode(0)", "  case .decrement:",
        "    encoder.encode(1)", "  case .set(let _0, let _1):", "    encoder.array(3)",
        "    encoder.encode(2)",
        "    Values.StructureCoding.encode(_0, into: &encoder)",
        "    Values.StructureCoding.encode(_1, into: &encoder)",
        "  case .child(let _0):", "    encoder.array(2)", "    encoder.encode(3)",
        "    Values.StructureCoding.encode(_0, into: &encoder)", "  case .other:",
        "    encoder.encode(4)", "  }", "}",
      ])
  }

  @Test func `an unknown number is the fallback, or an error`() {
    let decode = member("init(from", of: action)
    #expect(
      decode.suffix(5).map { $0.drop { $0 == " " } } == [
        "default:", "self = .other", "}", "try item.finish(&decoder)", "}",
      ])
    let without = member("init(from", of: "@Action enum Action {\n  case a\n}")
    #expect(without.contains { $0.contains("throw item.unknown") })
  }

  @Test func `the name includes the last value if its type is an action, through an alias too`() {
    let text = expansion(
      of: "@Action enum Action {\n  case row(Int, Alias)\n  case set(Int, [Int])\n}"
    ).text
    #expect(text.contains("return Lockstep.ActionName.of(\"row\", ending: action)"))
    #expect(text.contains("return \"set\""))
  }

  @Test func `a hand-written name is kept, and only actions have a name`() {
    let named = "@Action enum Action {\n  case a\n  var name: String { \"b\" }\n}"
    #expect(expansion(of: named).text.occurrences(of: "var name") == 1)
    #expect(
      expansion(of: "@ObservableState enum Part {\n  case a\n}").text.occurrences(of: "var name")
        == 0)
  }

  @Test func `an enumeration of one case has no unreachable default`() {
    #expect(
      member("func isSame", of: "@ObservableState enum One {\n  case a\n}") == [
        "func isSame(as other: Self) -> Bool {", "  switch (self, other) {", "  case (.a, .a):",
        "    return true", "  }", "}",
      ])
  }

  @Test func `an indirect enumeration is taken to hold collections`() {
    let source = "@ObservableState enum Tree {\n  case leaf\n  indirect case node(Tree, Tree)\n}"
    #expect(member("static var holdsCollections", of: source)[1] == "  true")
  }
}

extension String {
  /// The number of occurrences of a text.
  fileprivate func occurrences(of text: String) -> Int {
    var (count, rest) = (0, self[...])
    while let range = rest.firstRange(of: text) {
      count += 1
      rest = rest[range.upperBound...]
    }
    return count
  }
}
