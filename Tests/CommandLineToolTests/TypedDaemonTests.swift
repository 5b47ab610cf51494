import ArgumentParser
import Documents
import EventLoop
import Testing
import Values

@testable import CommandLineTool

/// The command line with a daemon whose state has types of its own.
@Suite struct TypedDaemonTests {
  static let schema = Schema(
    state: .type("State"), action: .type("Action"),
    types: [
      "State": .structure([
        .init(1, "todos", .array(.type("Todo"))), .init(2, "note", .optional(.text)),
        .init(3, "byNumber", .map(key: .integer, value: .type("Todo"))),
        .init(4, "filter", .type("Filter")), .init(5, "extra", .value),
      ]),
      "Todo": .structure([
        .init(1, "title", .text), .init(2, "tags", .optional(.array(.text))),
      ]),
      "Filter": .enumeration([.init(0, "all"), .init(1, "named", [.init(0, "_0", .text)])]),
      "Counter": .enumeration([.init(0, "decrTapped"), .init(1, "incrTapped")]),
      "Todos": .enumeration([
        .init(0, "add", [.init(0, "_0", .text)]), .init(1, "put", [.init(0, "_0", .type("Todo"))]),
        .init(2, "loaded", [.init(0, "_0", .type("Loaded"))]),
        .init(3, "rank", [.init(0, "_0", .integer)]),
      ]),
      "Loaded": .enumeration([
        .init(0, "success", [.init(0, "_0", .array(.text))]),
        .init(1, "failure", [.init(0, "_0", .type("Problem"))]),
      ]),
      "Problem": .enumeration([.init(0, "offline"), .init(1, "code", [.init(0, "_0", .integer)])]),
      "Action": .enumeration([
        .init(0, "reset"), .init(1, "counter", [.init(0, "_0", .type("Counter"))]),
        .init(2, "todos", [.init(0, "_0", .type("Todos"))]),
        .init(
          3, "resize",
          [
            .init(0, "width", .integer), .init(1, "height", .integer),
            .init(2, "name", .optional(.text)),
          ]),
        .init(4, "move", [.init(0, "_0", .integer), .init(1, "_1", .integer)]),
        .init(5, "show", [.init(0, "filter", .type("Filter"))]),
        .init(6, "element", [.init(0, "id", .text), .init(1, "action", .type("Counter"))]),
      ]),
    ])

  private func failure<T>(_ body: () throws -> T) -> Failure? {
    do {
      _ = try body()
      Issue.record("nothing was thrown")
      return nil
    } catch {
      return error as? Failure
    }
  }

  // MARK: Actions

  @Test(arguments: [
    (["reset"], #""reset""#),
    (["counter.incrTapped"], #"{"counter":"incrTapped"}"#),
    (["todos.add", "milk"], #"{"todos":{"add":"milk"}}"#),
    (["todos.add", "1"], #"{"todos":{"add":"1"}}"#),
    (["todos.rank", " -1"], #"{"todos":{"rank":-1}}"#),
    (["todos.put", #"{"title":"x"}"#], #"{"todos":{"put":{"title":"x"}}}"#),
    (
      ["todos.put", "title=a=b", #"tags=["c"]"#],
      #"{"todos":{"put":{"tags":["c"],"title":"a=b"}}}"#
    ),
    (
      ["todos.loaded.success", #"["a"]"#], #"{"todos":{"loaded":{"success":["a"]}}}"#
    ),
    (["todos.loaded.failure.offline"], #"{"todos":{"loaded":{"failure":"offline"}}}"#),
    (["todos.loaded.failure", "offline"], #"{"todos":{"loaded":{"failure":"offline"}}}"#),
    (["todos.loaded.failure.code", "7"], #"{"todos":{"loaded":{"failure":{"code":7}}}}"#),
    (["resize", "640", "480"], #"{"resize":{"height":480,"width":640}}"#),
    (
      ["resize", "height=480", "640", "big"],
      #"{"resize":{"height":480,"name":"big","width":640}}"#
    ),
    (["move", "1", "2"], #"{"move":[1,2]}"#),
    (["show.all"], #"{"show":{"filter":"all"}}"#),
    (["show", "all"], #"{"show":{"filter":"all"}}"#),
    (["show.named", "x"], #"{"show":{"filter":{"named":"x"}}}"#),
    (["element", "id=a", "action=incrTapped"], #"{"element":{"action":"incrTapped","id":"a"}}"#),
    ([#"{"todos": {"add": "milk"}}"#], #"{"todos":{"add":"milk"}}"#),
    ([#""reset""#], #""reset""#),
  ])
  func `an action is written by names or as JSON`(_ words: [String], _ json: String) throws {
    let action = try ActionArgument.value(words, schema: Self.schema)
    #expect(JSON.text(action, sortedKeys: true) == json)
    #expect(throws: Never.self) { try Send.payload(words, schema: Self.schema) }
  }

  @Test(arguments: [
    (
      ["counter.incr"],
      "there is no action \"counter.incr\"; under counter there are: decrTapped, incrTapped."
    ),
    (
      ["rest"],
      "there is no action \"rest\"; there are: counter, element, move, reset, resize, show, todos. "
        + "Did you mean \"reset\"?"
    ),
    (
      ["todos.loaded.done"],
      "there is no action \"todos.loaded.done\"; under todos.loaded there are: failure, success."
    ),
    (["reset.now"], "reset carries nothing, so there is nothing under it."),
    (["reset", "now"], "reset carries nothing: what is 'now'?"),
    (["todos.add.x"], "todos.add carries String, which has no cases."),
    (["todos.add"], "todos.add needs more: 'todos.add <String>'."),
    (
      ["resize", "1"],
      "resize needs more: 'resize width=<Int> height=<Int> [name=<String>]'."
    ),
    (["move", "1", "2", "3"], "'3' is too much: 'move <Int> <Int>'."),
    (["todos.rank", "x"], "todos.rank carries Int, and 'x' is not JSON for one."),
    (
      ["todos.rank", "99999999999999999999"],
      "todos.rank carries Int, and '99999999999999999999' is not JSON for one: line 1, column 1: the "
        + "integer 99999999999999999999 does not fit 64 bits: write 99999999999999999999.0, a double, "
        + "which may round it, or a string in quotes."
    ),
    (
      ["resize", "width=1", "heigth=2"],
      "resize carries no \"heigth\": 'resize width=<Int> height=<Int> [name=<String>]'. "
        + "Did you mean \"height\"?"
    ),
    (
      ["resize", "bogus=3", "width=1", "height=2"],
      "resize carries no \"bogus\": 'resize width=<Int> height=<Int> [name=<String>]'."
    ),
    (["show", "al"], "show: \"al\" is no Filter; there are: all, named."),
    (
      ["resize.width"],
      "resize carries several values: write "
        + "'resize width=<Int> height=<Int> [name=<String>]'."
    ),
    (["{}", "x"], "an action in JSON is whole: what is 'x' behind it?"),
  ])
  func `an error names the alternatives`(_ words: [String], _ message: String) {
    let failure = failure { try Send.payload(words, schema: Self.schema) }
    #expect(failure?.message == message)
    #expect(failure?.status == .usage)
  }

  @Test func `the values of an action follow its name`() throws {
    let arguments = ArgumentOrder.arranged(["--json", "send", "todos.rank", "-1"])
    let send = try #require(try LockstepCommand.parseAsRoot(arguments) as? Send)
    #expect(send.action == "todos.rank" && send.values == ["-1"] && send.options.json)
  }

  // MARK: Paths

  @Test(arguments: [
    ("", "", ""), ("/todos", "/todos", ""), ("/todos/0/title", "/todos", "/0/title"),
    ("/byNumber/3/title", "/byNumber/3/title", ""),
    ("/byNumber/3/tags/0", "/byNumber/3/tags", "/0"),
    ("/filter/named", "/filter", "/named"), ("/extra/a/0/b", "/extra/a", "/0/b"),
    ("/note", "/note", ""),
  ])
  func `a path is followed through fields and maps`(
    _ text: String, _ scope: String, _ rest: String
  ) throws {
    let path = try PathArgument(text).resolved(in: Self.schema)
    #expect(path.scope.pointer == scope)
    #expect(path.rest.pointer == rest)
  }

  @Test(arguments: [
    (
      "/tods",
      "there is no field \"tods\"; there are: byNumber, extra, filter, note, todos. "
        + "Did you mean \"todos\"?"
    ),
    ("/todos/0/x", "there is no field \"x\" at /todos/0; there are: tags, title."),
    ("/todos/x", "/todos is an array, and \"x\" is no index of one."),
    ("/byNumber/x", "/byNumber is a map with integer keys, and \"x\" is none."),
    ("/note/x", "/note is String, which has no parts, so there is no \"x\"."),
  ])
  func `the error for an absent path names the alternatives`(
    _ text: String, _ message: String
  ) throws {
    let path = try PathArgument(text)
    #expect(failure { try path.resolved(in: Self.schema) } == Failure(.absent, message))
  }

  @Test func `any path is valid in a document`() throws {
    let path = try PathArgument("/a/0/b").resolved(in: Schema(state: .value, action: .value))
    #expect(path.scope == ["a"] && path.rest == ["0", "b"])
  }

  // MARK: Schemas

  @Test func `a schema reads like Swift`() {
    let lines = Self.schema.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.prefix(2) == ["state   State", "action  Action"])
    #expect(lines.contains("enum Filter {"))
    #expect(lines.contains("  case all            // 0"))
    #expect(lines.contains("  case named(String)  // 1"))
    #expect(lines.contains("struct Todo {"))
    #expect(lines.contains("  var tags: [String]?  // 2"))
    #expect(
      lines.contains { $0.hasPrefix("  case resize(width: Int, height: Int, name: String?)") })
  }

  // MARK: The log

  private static func record(
    _ sequence: Int64, _ action: String, parent: Int64? = nil, origin: String = "client 3"
  ) -> Value {
    let parent: Value = parent.map { .integer($0) } ?? .null
    return [
      "sequence": .integer(sequence), "action": .text(action), "parent": parent,
      "origin": .text(origin), "outcome": "changed", "revision": .integer(sequence),
      "time": "12:00",
    ]
  }

  private static func output() throws -> Output {
    let command = try #require(try LockstepCommand.parseAsRoot(["log"]) as? Log)
    return Output(command.options)
  }

  @Test func `the tree shows each consequence under its cause`() throws {
    let records = try LogRecord.records(of: [
      "records": [
        Self.record(1, "load"), Self.record(2, "other"), Self.record(3, "loaded", parent: 1),
        Self.record(4, "shown", parent: 3), Self.record(5, "late", parent: 1),
      ]
    ])
    var tree = LogWriter(output: try Self.output(), isTree: true)
    let arranged = tree.arrange(records)
    #expect(arranged.map(\.sequence) == [1, 3, 4, 5, 2])
    let lines = tree.lines(arranged)
    #expect(lines[0] == "1  12:00  changed  1  client 3  load")
    #expect(lines[2] == "4  12:00  changed  4  client 3      shown")
    #expect(lines[4] == "2  12:00  changed  2  client 3  other")
    // A later record continues under the record already shown.
    let next = try LogRecord.records(of: ["records": [Self.record(6, "more", parent: 4)]])
    let later = tree.arrange(next)
    #expect(tree.lines(later)[0].hasSuffix("client 3        more"))
    var flat = LogWriter(output: try Self.output(), isTree: false)
    #expect(flat.arrange(records).map(\.sequence) == [1, 2, 3, 4, 5])
  }

  @Test func `the causes of an action are shown as a chain`() throws {
    let records = try LogRecord.records(of: [
      "records": [
        Self.record(7, "todos.loaded", parent: 6, origin: "effect fetch"),
        Self.record(6, "todos.load"),
      ]
    ])
    #expect(
      LogWriter.chain(records)
        == "todos.loaded  #7, effect fetch\n<- todos.load  #6, client 3")
    #expect(failure { try LogRecord.records(of: ["error": "x"]) }?.status == .goodbye)
  }

  @Test func `an effect is cancelled by its name`() throws {
    let command = try LockstepCommand.parseAsRoot(["effects", "cancel", "fetch"]) as? Effects
    #expect(command?.verb == .cancel && command?.what == "fetch")
    #expect(throws: (any Error).self) { try LockstepCommand.parseAsRoot(["effects", "cancel"]) }
    #expect(try LockstepCommand.parseAsRoot(["effects"]) is Effects)
    #expect(try (LockstepCommand.parseAsRoot(["why", "12"]) as? Why)?.sequence == 12)
  }
}
