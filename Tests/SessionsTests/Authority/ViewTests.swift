import Access
import CBOR
import Documents
import Testing
import Values

@Suite struct ViewTests {
  private func filter(
    _ grants: [String], _ denials: [String] = [], at path: Path = .root
  ) -> ViewFilter? {
    View(granting: patterns(grants), denying: patterns(denials)).filter(at: path)
  }

  private func bytes(_ text: String) throws -> [UInt8] {
    let value = try JSON.parse(text)
    return encoded { value.encode(into: &$0) }
  }

  private func shown(_ text: String, _ grants: [String], _ denials: [String] = []) throws -> String?
  {
    try #require(filter(grants, denials)).shown(CBORItem(bytes(text))).map { "\($0)" }
  }

  static let values: [(String, grants: [String], denials: [String], String?)] = [
    (#"{"a": 1}"#, ["a"], [], #"{"a": 1}"#),
    (#"{"b": 1}"#, ["a"], [], "{}"),
    ("7", ["a"], [], nil),
    ("[7]", ["a"], [], nil),
    ("7", ["/"], ["a"], "7"),
    ("[7]", ["/"], ["a"], nil),
    (#"{"a": 1}"#, ["/"], ["a"], "{}"),
    (#"{"a": [1]}"#, ["/"], ["a/0"], "{}"),
    (#"{"a": [1]}"#, ["/"], ["b/0"], #"{"a": [1]}"#),
    (#"{"a": {"b": 1}}"#, ["/"], ["a/b"], #"{"a": {}}"#),
    (#"{"a": {"b": 1}}"#, ["a/b"], ["a/*"], nil),
    (#"{"u": {"x": {"p": 1}}}"#, ["u/*/n"], [], #"{"u": {"x": {}}}"#),
    (#"{"u": {"x": 5}}"#, ["u/*/n"], [], #"{"u": {}}"#),
  ]

  @Test(arguments: values)
  func `a filter shows the permitted part of a value`(
    _ value: String, _ grants: [String], _ denials: [String], _ expected: String?
  ) throws {
    if filter(grants, denials) == nil {
      #expect(expected == nil)
    } else {
      #expect(try shown(value, grants, denials) == expected)
    }
  }

  /// Patches in diagnostic notation, of a view of everything except `s` and the `p` of the members
  /// of `u`.
  static let patches: [(patch: CBORItem, ViewFilter.Outcome, CBORItem?)] = {
    func map(_ key: String, _ value: CBORItem) -> CBORItem { .map([.init(.text(key), value)]) }
    let one = CBORItem.unsigned(1)
    return [
      (map("a", one), .patch, map("a", one)),
      (map("s", one), .untouched, nil),
      (map("s", .array([map("x", one)])), .untouched, nil),
      (map("s", .undefined), .untouched, nil),
      (map("u", map("x", map("p", one))), .untouched, nil),
      (map("u", map("x", map("n", one))), .patch, map("u", map("x", map("n", one)))),
      (map("u", map("x", map("n", .undefined))), .patch, map("u", map("x", map("n", .undefined)))),
      // A new entry is shown without its denied part.
      (map("u", map("x", .array([map("p", one)]))), .patch, map("u", map("x", .array([.map([])])))),
      (map("u", map("x", one)), .patch, map("u", map("x", one))),
      // The removed value may have been an array, and therefore hidden.
      (map("u", map("x", .undefined)), .resync, nil),
      (map("u", map("x", .array([.array([one])]))), .resync, nil),
      (map("u", map("x", .array([.array([]), .map([])]))), .untouched, nil),
      (map("g", map("x", map("v", one))), .patch, map("g", map("x", map("v", one)))),
      (map("g", map("x", one)), .patch, map("g", map("x", one))),
      (.array([map("s", one)]), .patch, .array([.map([])])),
      (.array([.array([one])]), .absent, nil),
      (.undefined, .absent, nil),
      (one, .patch, one),
      (.array([.array([]), .map([])]), .untouched, nil),
      (.map([]), .untouched, nil),
      (.array([]), .resync, nil),
      (.tagged(1, one), .resync, nil),
    ]
  }()

  @Test(arguments: patches)
  func `a filter passes the permitted part of a patch`(
    _ patch: CBORItem, _ outcome: ViewFilter.Outcome, _ expected: CBORItem?
  ) throws {
    let filter = try #require(self.filter(["/"], ["s", "u/*/p"]))
    let result = filter.outcome(of: patch.bytes)
    if case .array(let items) = patch, items.isEmpty {
      // Not a patch, but the filter need not detect that.
      #expect(result.patch.isEmpty)
      return
    }
    #expect(result.outcome == outcome, "\(patch)")
    #expect(result.patch == expected?.bytes ?? [])
  }

  @Test
  func `where only parts are granted, a map passes as a patch, and anything else needs a resync`()
    throws
  {
    let filter = try #require(self.filter(["g/*/v"]))
    let one = CBORItem.unsigned(1)
    func patch(_ value: CBORItem) -> [UInt8] {
      CBORItem.map([.init(.text("g"), .map([.init(.text("x"), value)]))]).bytes
    }
    let map = CBORItem.map([.init(.text("v"), one), .init(.text("w"), one)])
    let shown = CBORItem.map([.init(.text("v"), one)])
    #expect(filter.outcome(of: patch(.array([map]))) == (.patch, patch(.array([shown]))))
    #expect(filter.outcome(of: patch(map)) == (.patch, patch(shown)))
    #expect(filter.outcome(of: patch(one)).outcome == .resync)
    #expect(filter.outcome(of: patch(.undefined)).outcome == .resync)
    let removal = CBORItem.map([.init(.text("g"), .undefined)])
    #expect(filter.outcome(of: removal.bytes).outcome == .resync)
  }

  @Test func `a subscription is refused only where nothing can ever be visible`() {
    #expect(filter(["/"], ["a"], at: ["a"]) == nil)
    #expect(filter(["/"], ["a"], at: ["a", "b"]) == nil)
    #expect(filter(["a/b"], at: ["c"]) == nil)
    #expect(filter(["a/b"], at: ["a"])?.isEverything == false)
    #expect(filter(["a/b"], at: ["a", "b", "c"])?.isEverything == true)
    #expect(filter(["a/b"], ["a/*"], at: ["a"]) == nil)
    #expect(filter([]) == nil)
    #expect(filter(["/"])?.isEverything == true)
  }

  @Test func `clients that see the same at a path share its scope`() {
    #expect(filter(["/"], ["s"], at: ["a"]) == filter(["a"], ["a/b/c", "t"], at: ["a", "x"]))
    #expect(filter(["/"], ["*/p"], at: ["a"]) == filter(["/"], ["b/p", "a/p"], at: ["b"]))
    #expect(filter(["/"], ["*/p"]) != filter(["/"], ["b/p", "a/p"]))
  }

  @Test func `names are compared by their bytes`() throws {
    let text = "{\"\u{e9}\": 1, \"e\u{301}\": 2}"
    #expect(try shown(text, ["/"], ["\u{e9}"]) == "{\"e\u{301}\": 2}")
  }
}
