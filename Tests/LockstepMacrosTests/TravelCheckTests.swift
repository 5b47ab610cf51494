import Testing

/// The check that the types of fields and cases can travel. Scripts and a compiler are needed to see
/// its error; these tests see what it compiles.
@Suite struct TravelCheckTests {
  private func text(_ members: String, in type: String = "struct State") -> String {
    expansion(of: "@ObservableState \(type) {\n  \(members)\n}").text
  }

  private func messages(_ members: String, in type: String = "struct State") -> [String] {
    text(members, in: type).split(separator: "message: \"").dropFirst().map {
      String($0.prefix { $0 != "\"" })
    }
  }

  private func advice(_ members: String, in type: String = "struct State") -> [String] {
    messages(members, in: type).map {
      String($0.drop { $0 != ":" }.dropFirst(2))
    }
  }

  @Test func `a field of an unknown type has a check that names the type`() {
    #expect(
      messages("var p: Point")
        == ["'p' cannot travel to other processes: put @ObservableState on Point"])
    let text = text("var p: Point")
    #expect(text.contains("private static func _travels_p<T: Values.Synchronizable>(_: T) {"))
    #expect(text.contains("private static func _travels_p<T>(_: T) {"))
    #expect(text.contains("_travels_p(state.p)"))
  }

  @Test(arguments: [
    ("var p: [Point] = []", "put @ObservableState on Point"),
    ("var p: SyncMap<Int, [Point]> = [:]", "put @ObservableState on Point"),
    ("var p = Point(x: 1)", "put @ObservableState on Point"),
    ("var p = Mode.off", "put @ObservableState on Mode"),
    ("var p = make()", "put @ObservableState on its type"),
    ("var p: Geometry.Point?", "put @ObservableState on Geometry.Point"),
    ("var p: Pair<Point, Size>", "put @ObservableState on Pair and Point and Size"),
    ("var p: [UInt8: Int] = [:]", "use a key of another type than UInt8"),
    ("var p: Set<Double> = []", "use a key of another type than Double"),
    ("var d: Date?", "import LockstepFoundation for Date"),
    ("var d = Foundation.Date()", "import LockstepFoundation for Foundation.Date"),
    (
      "var d: [UUID: Point] = [:]",
      "import LockstepFoundation for UUID, and put @ObservableState on Point"
    ),
  ])
  func `the advice depends on the type`(_ field: String, _ advice: String) {
    #expect(self.advice(field) == [advice])
  }

  @Test func `a generic parameter needs a constraint`() {
    #expect(
      advice("var items: [Item]", in: "struct Page<Item>") == ["constrain to Synchronizable Item"])
  }

  @Test(arguments: [
    "var a = 1", "var a = -1.5", "var a = \"x\"", "var a = [true]", "var a: [String: Int] = [:]",
    "var a: SyncMap<Int, SyncArray<String>> = [:]", "var a: Int?", "let a = Point()",
    "@Ignored var a = Point()", "@Pulse var a: Point?", "static var a = Point()",
    "var a: Point { Point() }", "func f() -> Point { Point() }",
  ])
  func `what is known to travel, or never does, has no check`(_ member: String) {
    #expect(!text(member).contains("_travels_"))
  }

  @Test(arguments: ["Duration", "[Int]?", "SyncMap<Int, String>"])
  func `what is known by its name is compared by what only types that travel have`(type: String) {
    #expect(text("var a: \(type)").contains("!self.a.isSame(as: other.a)"))
    let cases = text("case a(\(type))", in: "enum State")
    #expect(cases.contains("!a0.isSame(as: b0)"))
    #expect(text("@Pulse var a: Point?").contains("!self._a.isSame(as: other._a)"))
  }

  @Test func `fields that share a declaration are checked by their type`() {
    let text = text("var a, b: Point")
    #expect(!text.contains("@_Travels"))
    #expect(text.contains("_travels(a: state.a)") && text.contains("_travels(b: state.b)"))
    #expect(text.contains("'b' cannot travel to other processes: put @ObservableState on Point"))
  }

  @Test func `every value that a case carries is checked`() {
    let text = expansion(
      of: "@Action enum Action {\n  case a(Int, Point), b(row: RowAction)\n  case c\n}"
    ).text
    #expect(text.contains("private static func _travels<T: Values.Synchronizable>(a_1: T.Type)"))
    #expect(text.contains("_travels(a_1: (Point).self)"))
    #expect(text.contains("'a' cannot travel to other processes: put @ObservableState on Point"))
    #expect(text.contains("'b' cannot travel to other processes: put @Action on RowAction"))
    #expect(!text.contains("c_") && !text.contains("a_0"))
  }
}
