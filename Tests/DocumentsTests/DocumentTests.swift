import CBOR
import Documents
import Lockstep
import Testing
import Values

/// The law of `Journaled`, checked with random edits.
@Suite struct DocumentTests {
  @Test(arguments: 0..<60)
  func `the notes give the same patch as the difference`(seed: Int) throws {
    var random = SeededGenerator(seed)
    var document = Document(random.value(depth: 4), seed: testSeed)
    var mirror = document.root
    var held: [(Document, [UInt8], Digest)] = []
    for step in 0..<120 {
      let before = document
      let beforeBytes = encoded(before)
      let failed = !perform(&random, on: &document)
      if failed && random.chance(80) || random.chance(10) {
        // A rollback restores the document exactly.
        document.rollBack()
        #expect(encoded(document) == beforeBytes)
        #expect(document.digest(testSeed) == before.digest(testSeed))
        #expect(document == before)
        continue
      }
      let patch = settled(&document)
      #expect(patch == difference(from: before, to: document), "seed \(seed), step \(step)")
      #expect(patch.isEmpty == document.isSame(as: before))
      #expect(settled(&document).isEmpty, "the notes are forgotten")
      if !patch.isEmpty { try apply(patch, to: &mirror) }
      #expect(mirror == document.root, "seed \(seed), step \(step)")
      #expect(mirror.digest(testSeed) == document.root.digest(testSeed))
      if random.chance(10) { held.append((before, beforeBytes, before.digest(testSeed))) }
    }
    for (copy, bytesThen, digest) in held {
      #expect(encoded(copy) == bytesThen, "a copy must not change")
      #expect(copy.digest(testSeed) == digest)
    }
  }

  /// Performs one to four actions in one transaction. Returns whether all succeeded.
  private func perform(_ random: inout SeededGenerator, on document: inout Document) -> Bool {
    for _ in 0...random.below(4) {
      let action = random.action(in: document.root)
      do throws(Rejection) {
        _ = try DocumentFeature().reduce(into: &document, action: action)
      } catch {
        #expect(error.message.utf8.count < 1000)
        return false
      }
    }
    return true
  }

  @Test(arguments: 0..<20)
  func `applying a patch is noted like any other edit`(seed: Int) throws {
    var random = SeededGenerator(1000 + seed)
    var document = Document(random.value(depth: 4), seed: testSeed)
    for _ in 0..<40 {
      let before = document
      var target = document
      _ = perform(&random, on: &target)
      let patch = difference(from: before, to: target)
      if patch.isEmpty { continue }
      try apply(patch, to: &document)
      #expect(document == target)
      if random.chance(50) {
        document.rollBack()
        #expect(document == before)
      } else {
        let again = settled(&document)
        #expect(again == difference(from: before, to: document))
      }
    }
  }

  @Test func `a copy in the middle of a transaction carries its notes`() throws {
    var document = try document(#"{"a": 1, "b": [1, 2]}"#)
    try document.set(2, at: [.text("a")])
    var copy = document
    try copy.append(3, at: [.text("b")])
    copy.rollBack()
    #expect(copy.root == ["a": 1, "b": [1, 2]])
    #expect(settled(&document) == [0xa1, 0x61, 0x61, 0x02])
  }

  @Test func `edits that cancel each other make no patch`() throws {
    var document = try document(#"{"a": {"b": [1, 2]}}"#)
    try document.set(5, at: pointer("/a/c"))
    try document.remove(at: pointer("/a/c"))
    try document.append(3, at: pointer("/a/b"))
    try document.remove(at: pointer("/a/b/2"))
    try document.set(json(#"{"b": [1, 2]}"#), at: pointer("/a"))
    #expect(settled(&document).isEmpty)
  }

  /// Short patches are made in one piece, and longer ones are not: names of each length around that.
  @Test(arguments: 1...4)
  func `the patch of one place is the difference, however long its path is`(depth: Int) throws {
    let values: [Value] = [
      .null, true, false, 7, -25, 70_000, .integer(.min), .unsigned(.max), 1.5, "", "text", [1],
      ["a": true],
    ]
    for length in 0...70 where length < 30 || depth < 3 {
      let name =
        String(repeating: "é", count: length / 2) + String(repeating: "x", count: length % 2)
      let path = Path(Array(repeating: .text(name), count: depth))
      for (index, old) in values.enumerated() {
        // Two that differ in each way, and the same.
        for new in [values[(index + 1) % values.count], values[(index + 4) % values.count], old] {
          var root = old
          for _ in 0..<depth { root = .object(TrieMap(uniqueKeysWithValues: [(name, root)])) }
          let before = Document(root, seed: testSeed)
          var document = before
          try document.set(new, at: path)
          let after = document.root
          #expect(
            settled(&document) == difference(from: before.root, to: after),
            "\(length) \(old) \(new)")
        }
      }
      var sum = Document(
        .object(TrieMap(uniqueKeysWithValues: [(name, Value.integer(255))])), seed: testSeed)
      let before = sum.root
      try sum.increment(at: Path([.text(name)]), by: 1)
      let after = sum.root
      #expect(settled(&sum) == difference(from: before, to: after))
    }
  }

  @Test func `a closure may change the value at a path`() throws {
    var document = try document(#"{"a": {"b": [1, 2]}}"#)
    let before = document
    try document.modify(at: pointer("/a")) { value in value = ["b": [1], "c": [:]] }
    #expect(settled(&document) == difference(from: before, to: document))
    let missing = try pointer("/x/y")
    #expect(throws: Rejection.self) { try document.modify(at: missing) { _ in } }
  }

  @Test func `a scope is the value at a path through object members only`() throws {
    let old = try document(#"{"a": {"b": 1}, "l": [1]}"#)
    var new = old
    try new.set(2, at: pointer("/a/b"))
    let path = try pointer("/a/b")
    #expect(new.isPresent(at: path))
    func scope(_ path: Path) -> [UInt8] {
      var encoder = CBOREncoder()
      new.encode(at: path, into: &encoder)
      return encoder.bytes
    }
    #expect(scope(path) == [2])
    var patch = CBOREncoder()
    #expect(new.encodeDifference(from: old, at: path, into: &patch))
    #expect(patch.bytes == [2])
    #expect(new.digest(at: path, seed: testSeed) == Value.integer(2).digest(seed: testSeed))
    let absent = try pointer("/l/0")
    #expect(!new.isPresent(at: absent))
    #expect(scope(absent) == [0xf7])
    #expect(new.digest(at: absent, seed: testSeed) == Value?.none.digest(seed: testSeed))
  }

  @Test func `values from outside are rehashed with the seed of the document`() throws {
    var document = Document(seed: testSeed)
    #expect(document.root == [:])
    try document.set(["x": ["y": [1, ["z": 2]]]], at: [.text("a")])
    try document.append(["q": 1], at: [.text("l")])
    try document.merge(["m": ["n": ["o": 1]]], at: [])
    let expected = try json(
      #"{"a": {"x": {"y": [1, {"z": 2}]}}, "l": [{"q": 1}], "m": {"n": {"o": 1}}}"#)
    #expect(document.root == expected)
    #expect(document.digest(testSeed) == Document(expected, seed: testSeed).digest(testSeed))
    guard case .object(let entries) = document.root, case .object(let inner)? = entries["a"]
    else { throw JSONPatchError("no object") }
    #expect(entries.seed == testSeed && inner.seed == testSeed)
  }
}
