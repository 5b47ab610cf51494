import ArgumentParser
import Documents
import EventLoop
import Testing
import Values

@testable import CommandLineTool

struct ArgumentTests {
  @Test func `global options before the command move behind it`() {
    #expect(
      ArgumentOrder.arranged(["--socket", "/s", "--json", "get", "/a"])
        == ["get", "--socket", "/s", "--json", "/a"])
    #expect(ArgumentOrder.arranged(["--timeout=3", "get"]) == ["get", "--timeout=3"])
    #expect(ArgumentOrder.arranged(["--help"]) == ["--help"])
    #expect(ArgumentOrder.arranged(["--socket"]) == ["--socket"])
  }

  @Test func `a negative number is a value`() throws {
    let command = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["set", "/n", "-5"]))
    #expect(try (command as? SetValue)?.action() == .set(["n"], -5))
  }

  @Test(arguments: ["-5", "-hello", "-h2", "-"]) func `a text may begin with a dash`(
    text: String
  ) throws {
    let arguments = ArgumentOrder.arranged(["set", "/n", "--text", text])
    let command = try LockstepCommand.parseAsRoot(arguments) as? SetValue
    #expect(command?.arguments.json == text)
    let behind = ArgumentOrder.arranged(["set", "/n", "--text", "--", text])
    #expect((try LockstepCommand.parseAsRoot(behind) as? SetValue)?.arguments.json == text)
  }

  @Test func `where values are files, a word with a dash is an unknown option`() {
    #expect(ArgumentOrder.arranged(["export", "-o"]) == ["export", "-o"])
    #expect(throws: (any Error).self) {
      _ = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["export", "-o"]))
    }
  }

  @Test func `an error of the parser quotes the argument as it was written`() throws {
    do {
      _ = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["get", "--timeout", "-1"]))
      Issue.record("it was taken")
    } catch {
      let text = ArgumentOrder.unmarkedAll(LockstepCommand.fullMessage(for: error))
      #expect(text.contains("'-1' is invalid"), "\(text)")
      #expect(text.contains("a number of seconds above 0"), "\(text)")
    }
  }

  @Test(arguments: [
    ("a/b", "/a/b"), ("a.b", "/a/b"), ("$.a[0].b", "/a/0/b"), ("#/a", "/a"), (".a", "/a"),
    ("/a~b", "/a~0b"), ("a~b", "/a~0b"),
  ])
  func `an invalid path gets a suggestion of the valid one`(text: String, right: String) {
    #expect {
      try PathArgument(text)
    } throws: { error in
      (error as? ValidationError)?.message.contains("'\(right)'") == true
    }
  }

  @Test func `a scope ends before the first key that may be an index`() throws {
    let path = try PathArgument("/a/b/0/c")
    #expect(path.scope == ["a", "b"])
    #expect(path.rest == ["0", "c"])
    #expect(try PathArgument("/a/-").scope == ["a"])
    #expect(try PathArgument("").scope == .root)
    #expect(try PathArgument("/").scope == [""])
  }

  @Test(arguments: [
    (["2"], #"the array at /a has 2 elements; there is no index 2."#),
    (["-1"], #"the array at /a has 2 elements, and "-1" is no index of one."#),
    (["x"], #"the array at /a has 2 elements, and "x" is no index of one."#),
    (["0", "y"], #"the object at /a/0 has no member "y"; it has "lamp"."#),
    (["0", "lmap"], #"the object at /a/0 has no member "lmap"; it has "lamp"."#),
    (
      ["0", "lamps"],
      #"the object at /a/0 has no member "lamps"; it has "lamp". Did you mean "lamp"?"#
    ),
    (["0", "lamp", "y"], "the number at /a/0/lamp has no parts, so there is no /a/0/lamp/y."),
    (["1", "y"], #"the object at /a/1 is an empty object: it has no member "y"."#),
  ])
  func `the error for an absent path says which part is missing`(keys: [PathKey], says: String) {
    let value: Value = [["lamp": 1], [:]]
    #expect(value.absence(of: Path(keys), at: ["a"]) == says)
  }

  @Test func `the error does not list many members, and gives no suggestion for a long name`() {
    let names = (0..<1000).map { "lamp\($0)" }
    var members = TrieMap<String, Value>()
    for name in names { members.updateValue(.null, forKey: name) }
    let value = Value.object(members)
    #expect(
      value.absence(of: ["lmp7"], at: .root)
        == #"the document has no member "lmp7". Did you mean "lamp7"?"#)
    let long = String(repeating: "x", count: 1_000_000)
    #expect(value.absence(of: [.text(long)], at: .root).utf8.count < 200)
  }

  @Test func `the error for an unquoted word shows how to quote it`() {
    #expect {
      try JSONArgument.value("hello", isText: false)
    } throws: { error in
      let failure = error as? Failure
      return failure?.status == .usage && failure?.message.contains("'\"hello\"'") == true
    }
    #expect(throws: Never.self) { try JSONArgument.value("hello", isText: true) }
  }

  @Test func `a condition is split after the pointer`() throws {
    let condition = try UntilCondition(#"/a=b="x=1""#)
    #expect(condition.path == ["a=b"])
    #expect(condition.value == "x=1")
    #expect(try UntilCondition("/n=1").holds(in: ["n": 1.0], at: .root))
    #expect(try UntilCondition("/n/m=1").holds(in: ["m": 1], at: ["n"]))
    #expect(try !UntilCondition("/n=1").holds(in: nil, at: .root))
    #expect(throws: ValidationError.self) { try UntilCondition("/a=b") }
    #expect(throws: ValidationError.self) { try UntilCondition("a=1") }
  }

  @Test(arguments: [
    (["log", "--limit", "-1"], "whole number, at least 0"),
    (["ping", "--count", "-1"], "whole number, at least 1"),
    (["ping", "--interval", "0"], "number of seconds above 0"),
    (["watch", "--count", "0"], "whole number, at least 1"),
    (["journal", "x", "--last", "-1"], "whole number, at least 0"),
    (["bench", "--increments", "x"], "whole number, at least 1"),
    (["get", "--timeout", "1e10"], "below 1000000000"),
    (["why", "abc"], "whole number, at least 0"),
    (["undo", "1001"], "whole number, at most 1000"),
    (["redo", "0"], "whole number, at least 1"),
    (["pause", "--for", "100000"], "whole number, at most 86400"),
    (["why", "18446744073709551616"], "whole number, at most 18446744073709551615"),
  ])
  func `the error for an invalid number says which numbers are valid`(
    arguments: [String], reason: String
  ) {
    #expect {
      try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(arguments))
    } throws: { error in
      LockstepCommand.message(for: error).contains(reason)
    }
  }

  @Test func `a watch takes several conditions, each with its own path`() throws {
    let arguments = ["watch", "/a", "--until", "/a/x=1", "--until", "/a/y=2"]
    let watch = try #require(try LockstepCommand.parseAsRoot(arguments) as? Watch)
    #expect(watch.until.map(\.path) == [["a", "x"], ["a", "y"]])
    #expect(watch.until.map { $0.holds(in: ["x": 1, "y": 1], at: ["a"]) } == [true, false])
  }
}
