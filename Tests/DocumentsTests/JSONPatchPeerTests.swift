import Documents
import FoundationEssentials
import Glibc
import Lockstep
import Testing
import Values

/// Random patches, applied by us and by the PyPI package `jsonpatch` in the Python that
/// LOCKSTEP_PYTHON names.
@Suite struct JSONPatchPeerTests {
  static let python: String? = {
    guard let python = ProcessInfo.processInfo.environment["LOCKSTEP_PYTHON"],
      system("'\(python)' -c 'import jsonpatch' 2>/dev/null") == 0
    else { return nil }
    return python
  }()

  static let script = """
    import json, sys, jsonpatch
    for line in open(sys.argv[1]):
        case = json.loads(line)
        try:
            print(json.dumps(jsonpatch.apply_patch(case["document"], case["patch"])))
        except Exception:
            print("error")
    """

  @Test(.enabled(if: python != nil))
  func `jsonpatch from PyPI has the same results`() throws {
    var random = SeededGenerator(6902)
    var cases: [(document: Value, patch: Value)] = []
    var lines: [UInt8] = []
    for _ in 0..<4000 {
      let document = random.plain(depth: 3)
      var operations: [Value] = []
      for _ in 0...random.below(3) { operations.append(random.operation(on: document)) }
      let patch = Value.array(TreeArray(operations))
      cases.append((document, patch))
      JSON.write(["document": document, "patch": patch], into: &lines)
      lines.append(0x0a)
    }
    let folder = FileManager.default.temporaryDirectory.appending(path: "lockstep-\(getpid())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(lines).write(to: folder.appending(path: "cases"))
    try Data(Self.script.utf8).write(to: folder.appending(path: "script.py"))
    let command =
      "'\(Self.python ?? "")' '\(folder.path)/script.py' '\(folder.path)/cases'"
      + " > '\(folder.path)/results'"
    try #require(system(command) == 0)
    let results = try Data(contentsOf: folder.appending(path: "results")).split(separator: 0x0a)
    try #require(results.count == cases.count)

    var failures = 0
    for (item, result) in zip(cases, results) {
      let theirs = result.elementsEqual("error".utf8) ? nil : try JSON.parse(Array(result))
      var document = Document(item.document, seed: testSeed)
      let action = try JSONPatch.actions(from: item.patch)
      do throws(Rejection) {
        try reduce(action, into: &document)
        #expect(document.root == theirs, "\(JSON.text(item.document)) \(JSON.text(item.patch))")
      } catch {
        failures += 1
        #expect(
          theirs == nil, "\(JSON.text(item.document)) \(JSON.text(item.patch)): \(error)")
      }
    }
    // Both outcomes must be frequent for this test to prove anything.
    #expect(failures > 400 && failures < 3600)
  }
}

extension SeededGenerator {
  /// A value that Python compares as we do: in Python, True equals 1 and a text has elements.
  fileprivate mutating func plain(depth: Int) -> Value {
    if depth > 0 && chance(70) {
      if chance(50) {
        var entries = TrieMap<String, Value>()
        for _ in 0..<below(4) { entries.updateValue(plain(depth: depth - 1), forKey: member()) }
        return .object(entries)
      }
      var elements: [Value] = []
      for _ in 0..<below(4) { elements.append(plain(depth: depth - 1)) }
      return .array(TreeArray(elements))
    }
    return [.null, "", 1, 2, 1.0, 2.5, .integer(.max)][below(7)]
  }

  fileprivate mutating func member() -> String {
    ["a", "b", "", "0", "1", "~", "/", "é"][below(8)]
  }

  fileprivate mutating func pointer(in value: Value) -> String {
    var keys: [PathKey] = []
    var current = value
    while chance(75) {
      let key: PathKey
      switch current {
      case .object(let entries) where !entries.isEmpty && chance(80):
        key = .text(Array(entries.keys)[below(entries.count)])
      case .array(let elements):
        key = .text(chance(10) ? ["-", "01", "x"][below(3)] : "\(below(elements.count + 2))")
      default: key = .text(member())
      }
      keys.append(key)
      guard let next = current.child(key) else { break }
      current = next
    }
    return Path(keys).pointer
  }

  fileprivate mutating func operation(on document: Value) -> Value {
    let place = pointer(in: document)
    let value = plain(depth: 2)
    switch below(6) {
    case 0: return ["op": "add", "path": .text(place), "value": value]
    // Python treats the removal of the root differently.
    case 1 where !place.isEmpty: return ["op": "remove", "path": .text(place)]
    case 2: return ["op": "replace", "path": .text(place), "value": value]
    case 3: return ["op": "move", "from": .text(place), "path": .text(pointer(in: document))]
    case 4: return ["op": "copy", "from": .text(place), "path": .text(pointer(in: document))]
    default:
      let expected = Path(pointer: place).flatMap { document.value(at: $0) } ?? value
      return ["op": "test", "path": .text(place), "value": chance(80) ? expected : value]
    }
  }
}
