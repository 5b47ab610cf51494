import Documents
import Lockstep
import Testing
import Values

@Suite struct DocumentActionPathsTests {
  @Test(
    arguments: [
      (.set(["a"], 1), [], [["a"]]), (.merge(["a"], [:]), [], [["a"]]),
      (.remove(["a"]), [], [["a"]]), (.increment(["a"], by: 1), [], [["a"]]),
      (.append(["a"], 1), [], [["a"]]), (.insert(["a"], 1), [], [["a"]]),
      (.replace(["a"], 1), [], [["a"]]), (.test(["a"], 1), [["a"]], []),
      (.copy(from: ["a"], to: ["b"]), [["a"]], [["b"]]),
      (.move(from: ["a"], to: ["b"]), [["a"]], [["a"], ["b"]]),
      (
        .transaction([.test(["a"], 1), .transaction([.remove(["b"])]), .set(["c"], 2)]),
        [["a"]], [["b"], ["c"]]
      ),
    ] as [(DocumentAction, [Path], [Path])])
  func `an action has the paths that it reads and the paths that it writes`(
    _ action: DocumentAction, _ read: [Path], _ written: [Path]
  ) {
    #expect(action.readPaths == read)
    #expect(action.writtenPaths == written)
    #expect(action.heldNames.contains(action.name))
  }

  @Test func `a transaction has the names of all its actions, each once`() {
    let action = DocumentAction.transaction([
      .remove(["a"]), .transaction([.set(["b"], 1), .remove(["c"])]),
    ])
    #expect(action.heldNames == ["set", "remove", "transaction"])
  }
}
