import ArgumentParser
import Documents
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

  @Test func `where values are files, a word with a dash is an option that there is not`() {
    #expect(ArgumentOrder.arranged(["export", "-o"]) == ["export", "-o"])
    #expect(throws: (any Error).self) {
      _ = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["export", "-o"]))
    }
  }

  @Test func `a message of the parser quotes what was written`() throws {
    do {
      _ = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["get", "--timeout", "-1"]))
      Issue.record("it was taken")
    } catch {
      let text = ArgumentOrder.unmarkedAll(LockstepCommand.fullMessage(for: error))
      #expect(text.contains("'-1' is invalid"), "\(text)")
    }
  }

  @Test(arguments: [
    ("a/b", "/a/b"), ("a.b", "/a/b"), ("$.a[0].b", "/a/0/b"), ("#/a", "/a"), (".a", "/a"),
    ("/a~b", "/a~0b"), ("a~b", "/a~0b"),
  ])
  func `a path that is none suggests the right one`(text: String, right: String) {
    #expect {
      try PathArgument(text)
    } throws: { error in
      (error as? ValidationError)?.message.contains("'\(right)'") == true
    }
  }

  @Test func `a scope ends before what may be an index`() throws {
    let path = try PathArgument("/a/b/0/c")
    #expect(path.scope == ["a", "b"])
    #expect(path.rest == ["0", "c"])
    #expect(try PathArgument("/a/-").scope == ["a"])
    #expect(try PathArgument("").scope == .root)
    #expect(try PathArgument("/").scope == [""])
  }

  @Test func `an absent place is explained`() throws {
    let value: Value? = [["x": 1], 2]
    #expect(
      value.absence(of: ["2"], in: ["a"])
        == "the array at /a has 2 elements; there is no index 2.")
    #expect(value.absence(of: ["0", "y"], in: ["a"]) == "the object at /a/0 has no member \"y\".")
    #expect(
      value.absence(of: ["1", "y"], in: ["a"])
        == "the number at /a/1 has no parts, so there is no /a/1/y.")
    #expect(Value?.none.absence(of: [], in: ["a"]) == "nothing stands at '/a'.")
  }

  @Test func `a bare word is told to be quoted`() {
    #expect {
      try JSONArgument.value("hello", isText: false)
    } throws: { error in
      let failure = error as? Failure
      return failure?.status == .usage && failure?.message?.contains("'\"hello\"'") == true
    }
    #expect(throws: Never.self) { try JSONArgument.value("hello", isText: true) }
  }

  @Test func `a condition splits behind the pointer`() throws {
    let condition = try UntilCondition(#"/a=b="x=1""#)
    #expect(condition.path == ["a=b"])
    #expect(condition.value == "x=1")
    #expect(try UntilCondition("/n=1").holds(in: ["n": 1.0], at: .root))
    #expect(try UntilCondition("/n/m=1").holds(in: ["m": 1], at: ["n"]))
    #expect(try !UntilCondition("/n=1").holds(in: nil, at: .root))
    #expect(throws: ValidationError.self) { try UntilCondition("/a=b") }
    #expect(throws: ValidationError.self) { try UntilCondition("a=1") }
  }

  @Test func `a mistyped command is close to the right one`() {
    #expect("gte".distance(to: "get") == 2)
    #expect("".distance(to: "get") == 3)
    #expect("watch".distance(to: "watch") == 0)
    #expect(LockstepCommand.commandNames.contains("watch"))
  }
}
