import Testing

@Suite struct ComplaintTests {
  private func field(
    _ declaration: String, _ message: String, column: Int, fixIt: String? = nil,
    fixed: String? = nil, at location: Testing.SourceLocation = #_sourceLocation
  ) {
    func source(_ field: String) -> String {
      "@ObservableState struct State {\n  \(field)\n}"
    }
    expectComplaint(
      source(declaration), message, line: 2, column: column, fixIt: fixIt,
      fixed: fixed.map(source), at: location)
  }

  @Test func `a class gets a fix-it that makes it a struct`() {
    expectComplaint(
      "@ObservableState final class State {\n}",
      "A state is a value; a class could be changed from anywhere.", line: 1, column: 24,
      fixIt: "Make it a struct", fixed: "@ObservableState final struct State {\n}")
  }

  @Test func `an actor or a protocol cannot be a state`() {
    expectComplaint(
      "@ObservableState actor State {\n}",
      "'@ObservableState' is for structs and enumerations, not for actors.", line: 1, column: 1)
    expectComplaint(
      "@ObservableState protocol State {\n}",
      "'@ObservableState' is for structs and enumerations, not for protocols.", line: 1, column: 1)
  }

  @Test func `only an enumeration can be an action`() {
    expectComplaint(
      "@Action struct Action {\n}", "'@Action' is for enumerations: a case for what may happen.",
      line: 1, column: 1)
  }

  @Test func `a type that is private inside another gets a fix-it that makes it fileprivate`() {
    func sentence(_ name: String) -> String {
      "'\(name)' is private inside another type, where the code of the macro does not see it: make it "
        + "fileprivate."
    }
    for (attribute, item) in [("ObservableState", "@Fallback case name"), ("Action", "case name")] {
      func source(_ modifier: String) -> String {
        "struct Todos {\n  @\(attribute) \(modifier) enum Sort {\n    \(item)\n  }\n}"
      }
      expectComplaint(
        source("private"), sentence("Sort"), line: 2, column: 5 + attribute.count,
        fixIt: "Make it fileprivate", fixed: source("fileprivate"))
    }
    expectComplaint(
      "struct Todos {\n  @ObservableState private struct State {\n  }\n}", sentence("State"),
      line: 2,
      column: 20, fixIt: "Make it fileprivate",
      fixed: "struct Todos {\n  @ObservableState fileprivate struct State {\n  }\n}")
    expectComplaint(
      "struct Todos {\n  private struct List {\n    @ObservableState struct State {\n    }\n  }\n}",
      sentence("List"), line: 3, column: 5)
  }

  @Test func `functions, tuples and existentials are refused as fields`() {
    field("var f: () -> Void", "A function cannot travel to another process.", column: 10)
    field("var f = { 1 }", "A function cannot travel to another process.", column: 11)
    let tuple = "A tuple cannot travel; make it a struct with '@ObservableState'."
    field("var t: (Int, Int)", tuple, column: 10)
    field("var t = (1, 2)", tuple, column: 11)
    func existential(_ name: String) -> String {
      "'\(name)' says too little to be decoded; name a concrete type."
    }
    field("var a: Any = 1", existential("Any"), column: 10)
    field("var a: [any Shape] = []", existential("any Shape"), column: 11)
    field("var a: Result<Int, any Error>", existential("any Error"), column: 22)
  }

  @Test func `optional elements of collections are refused`() {
    let message =
      "An element of a collection cannot be optional, since an absent one is a removed one."
    field(
      "var a: [Int?] = []", message, column: 11, fixIt: "Remove '?'", fixed: "var a: [Int] = []")
    field(
      "var a: SyncMap<Int, Todo?> = [:]", message, column: 23, fixIt: "Remove '?'",
      fixed: "var a: SyncMap<Int, Todo> = [:]")
    field(
      "var a: SyncIdentifiedArray<Todo?> = []", message, column: 30, fixIt: "Remove '?'",
      fixed: "var a: SyncIdentifiedArray<Todo> = []")
    field("var a: [Int: Optional<Int>] = [:]", message, column: 16)
    field(
      "var a: [String: [Int?]]? = [:]", message, column: 20, fixIt: "Remove '?'",
      fixed: "var a: [String: [Int]]? = [:]")
  }

  @Test func `an implicitly unwrapped field gets a fix-it that makes it optional`() {
    field(
      "var a: Int!",
      "An implicitly unwrapped value cannot travel, since it may be absent where it is used.",
      column: 13, fixIt: "Use '?'", fixed: "var a: Int?")
  }

  @Test func `lazy and weak properties are refused`() {
    field(
      "lazy var a = 1",
      "A lazy property changes the state when it is read; make it computed, or give it a value.",
      column: 3)
    field(
      "weak var a: Thing?", "A state holds values; a reference could be changed from anywhere.",
      column: 3)
    field(
      "unowned var a: Thing", "A state holds values; a reference could be changed from anywhere.",
      column: 3)
  }

  @Test func `property wrappers other than Pulse are refused`() {
    field(
      "@Clamped var a = 1",
      "What '@Clamped' stores cannot be seen from here; only '@Pulse' is known.", column: 3,
      fixIt: "Remove '@Clamped'", fixed: "var a = 1")
  }

  @Test func `observers are refused`() {
    field(
      "var a: Int = 1 { didSet { b += 1 } }",
      "An observer would run again in every mirror, and change the state there.", column: 18,
      fixIt: "Remove the observers", fixed: "var a: Int = 1")
  }

  @Test func `an attribute that needs an initial value gets a fix-it that removes it`() {
    let message = "'a' needs an initial value, which it takes where none comes."
    field(
      "@Ephemeral var a: Int", message, column: 18, fixIt: "Remove '@Ephemeral'",
      fixed: "var a: Int")
    field(
      "@Ignored var a: Int", message, column: 16, fixIt: "Remove '@Ignored'", fixed: "var a: Int")
    field(
      "@Ignored @Ephemeral var a = 1",
      "An ignored field never travels, so it is never in a file either.", column: 12,
      fixIt: "Remove '@Ephemeral'", fixed: "@Ignored var a = 1")
  }

  @Test func `a field needs a declaration of its own, outside of '#if'`() {
    field("var (a, b) = (1, 2)", "Every field needs a declaration of its own.", column: 7)
    field("var isAbsent = 1", "'isAbsent' says of a value that it stands for nothing.", column: 7)
    expectComplaint(
      "@ObservableState struct State {\n  #if DEBUG\n  var a = 1\n  #endif\n}",
      "A field cannot stand inside '#if': every peer has to have the same fields.", line: 2,
      column: 3)
    expectComplaint(
      "@Action enum Action {\n  #if DEBUG\n  case a\n  #endif\n}",
      "A case cannot stand inside '#if': every peer has to have the same cases.", line: 2,
      column: 3)
  }

  @Test func `the values of a case must be encodable`() {
    expectComplaint(
      "@Action enum Action {\n  case a(Int, () -> Void)\n}",
      "A function cannot travel to another process.", line: 2, column: 15)
    expectComplaint(
      "@ObservableState enum Part {\n  case a(of: (Int, Int))\n}",
      "A tuple cannot travel; make it a struct with '@ObservableState'.", line: 2, column: 14)
    expectComplaint(
      "@Action enum Action {\n}", "An enumeration without cases has no value that could travel.",
      line: 1, column: 14)
  }

  @Test func `there is one fallback, and it has no values`() {
    expectComplaint(
      "@Action enum Action {\n  @Fallback case a(Int)\n}",
      "A fallback stands for cases that nobody here knows, so it cannot carry anything.", line: 2,
      column: 19, fixIt: "Remove '@Fallback'", fixed: "@Action enum Action {\n  case a(Int)\n}")
    expectComplaint(
      "@Action enum Action {\n  @Fallback case a\n  @Fallback case b\n}",
      "'a' is the fallback already.", line: 3, column: 18, fixIt: "Remove '@Fallback'",
      fixed: "@Action enum Action {\n  @Fallback case a\n  case b\n}")
  }

  @Test func `members that are no fields are not checked`() {
    let source = """
      @ObservableState struct State {
        static var shared: () -> Void = {}
        static let all: [Int?] = []
        let constant = (1, 2)
        var computed: (Int, Int) { (1, 2) }
        var both: Any { get { 1 } set {} }
        @Ignored var done: (() -> Void)? = nil
        func f() {}
      }
      """
    expectExpansionSucceeds(source)
  }

  // MARK: Enumerations of a state

  private static let noFallback = """
    A case that a newer version adds would disconnect older peers: mark one '@Fallback', or say \
    '@ObservableState(frozen: true)' if none will be added.
    """

  @Test func `an enumeration of a state without a fallback gets a warning`() {
    let (_, complaints) = expansion(of: "@ObservableState enum Part {\n  case a\n}")
    #expect(complaints == [Self.noFallback])
    for source in [
      "@ObservableState enum Part {\n  case a\n  @Fallback case b\n}",
      "@ObservableState(frozen: true) enum Part {\n  case a\n}", "@Action enum Part {\n  case a\n}",
      "@ObservableState struct Part {\n  var a = 1\n}",
    ] {
      #expect(expansion(of: source).complaints == [])
    }
    let open = "@ObservableState(frozen: false) enum Part {\n  case a\n}"
    #expect(expansion(of: open).complaints == [Self.noFallback])
  }

  @Test func `the warning offers a fallback, and to say that the enumeration is frozen`() {
    let source = "@ObservableState enum Part {\n  case a\n}"
    #expect(
      fixed(source, "Add '@Fallback case unknown'")
        == "@ObservableState enum Part {\n  case a\n  @Fallback case unknown\n}")
    #expect(
      fixed(source, "Say that no case will be added")
        == "@ObservableState(frozen: true) enum Part {\n  case a\n}")
  }

  @Test func `a struct cannot be frozen`() {
    #expect(
      expansion(of: "@ObservableState(frozen: true) struct Part {\n  var a = 1\n}").complaints
        == ["Only an enumeration is frozen: a field may always be added."])
  }
}
