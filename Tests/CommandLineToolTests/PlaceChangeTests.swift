import CBOR
import Documents
import Testing
import Values

@testable import CommandLineTool

struct PlaceChangeTests {
  private func changes(
    _ old: Value?, _ new: Value?, at path: Path = [], along steps: [PathKey] = []
  ) throws -> [String] {
    try PlaceChange.all(from: old, to: new, at: path, along: steps[...]).map { change in
      func text(_ value: Value?) -> String {
        value.map { PrettyWriter.text($0, width: .max, hasColor: false) } ?? "-"
      }
      return "\(change.path.pointer) \(text(change.old)) \(text(change.new))"
    }
  }

  @Test func `a change names the place, what was there, and what is`() throws {
    #expect(
      try changes(["a": 1, "b": 2], ["a": 3, "c": ["d": 4]]).sorted() == [
        "/a 1 3", "/b 2 -", #"/c - {"d": 4}"#,
      ])
    #expect(try changes(["a": ["b": 1]], ["a": ["b": [1]]]) == ["/a/b 1 [1]"])
    #expect(try changes(nil, ["a": 1], at: ["x"]) == [#"/x - {"a": 1}"#])
    #expect(try changes(1, nil) == [" 1 -"])
    #expect(try changes(["a": 1], ["a": 1]) == [])
    #expect(try changes(nil, nil) == [])
  }

  @Test func `the changes of an array are to be done in order`() throws {
    #expect(try changes([1, 2, 3], [1, 9, 3]) == ["/1 2 9"])
    #expect(try changes([1, 2, 3], [1, 3]) == ["/1 2 -"])
    #expect(try changes([1, 3], [1, 2, 3]) == ["/1 - 2"])
    #expect(try changes([["x": 1], 2], [["x": 5], 2]) == ["/0/x 1 5"])
  }

  @Test func `a star is every key, and shows only where something has changed`() throws {
    let old: Value = ["lamps": ["a": ["on": true, "n": 1], "b": ["on": true], "c": 1]]
    let new: Value = ["lamps": ["a": ["on": true, "n": 2], "b": ["on": false], "d": ["on": 1]]]
    #expect(
      try changes(old, new, along: ["lamps", "*", "on"]) == [
        "/lamps/b/on true false", "/lamps/d/on - 1",
      ])
    #expect(
      try changes(old, nil, along: ["lamps", "*", "on"]) == [
        "/lamps/a/on true -", "/lamps/b/on true -",
      ])
    #expect(
      try changes([[1], [2]], [[1], [3], [4]], along: ["*", "0"]) == ["/1/0 2 3", "/2/0 - 4"])
    #expect(try changes(1, ["a": 1], along: ["*"]) == ["/a - 1"])
    #expect(try changes(["a": 1], ["a": 2], along: ["b"]) == [])
  }

  /// Doing what the changes say makes the new value of the old one, and undoing it the old.
  @Test(arguments: 0..<300 as Range<UInt64>)
  func `the changes are what makes one value of another`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    func value(_ depth: Int) -> Value {
      switch depth == 0 ? 0 : below(3) {
      case 0: return [.integer(Int64(below(4))), "x", .null, true][below(4)]
      case 1: return .array(TreeArray((0..<below(6)).map { _ in value(depth - 1) }))
      default:
        var entries = TrieMap<String, Value>()
        for _ in 0..<below(5) {
          entries.updateValue(value(depth - 1), forKey: ["a", "b", "~/", "c"][below(4)])
        }
        return .object(entries)
      }
    }
    let (old, new) = (value(3), value(3))
    let changes = try PlaceChange.all(from: old, to: new, at: [], along: [])
    #expect(try applied(changes, to: old) == new)
    let undone = changes.reversed().map {
      PlaceChange(path: $0.path, old: $0.new, new: $0.old)
    }
    #expect(try applied(undone, to: new) == old)
  }

  private func applied(_ changes: [PlaceChange], to value: Value) throws -> Value {
    var document = Document(value)
    for change in changes {
      #expect(document.root.value(at: change.path) == change.old || change.old == nil)
      let isElement = if case .integer? = change.path.keys.last { true } else { false }
      let action: DocumentAction =
        switch (change.old, change.new) {
        case (_, nil): .remove(change.path)
        case (nil, let new?) where isElement: .insert(change.path, new)
        case (_, let new?): .set(change.path, new)
        }
      _ = try DocumentFeature().reduce(into: &document, action: action)
    }
    return document.root
  }
}
