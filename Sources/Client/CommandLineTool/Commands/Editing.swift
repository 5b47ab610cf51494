import ArgumentParser
import Documents
import EventLoop
import Lockstep
import Values

// The commands that do one action of the document feature at a path with a value.

struct SetValue: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Put a value at a path.",
    discussion: """
      The parent must exist: an object, or an array with that index ('-' is behind the last). \
      The path '' replaces the whole document.

      With --if only where that value stands, as 'test' compares: who sets what it has read does not \
      undo what somebody has set meanwhile. Else nothing changes, and the status is 10. For several \
      places at once see 'lockstep patch'.

      EXAMPLES:
        lockstep set /lamps '{"hall": false}'
        lockstep set /owner Ann --text

        $ lockstep set /owner Bob --text
        revision 1
        $ lockstep set /owner Ann --text --if Bob
        revision 2
        $ lockstep set /owner Eve --text --if Bob
        lockstep: rejected: expected "Bob", found "Ann" (at /owner).
      """)

  @OptionGroup var arguments: PathAndValue

  @Option(
    name: .customLong("if"),
    help: ArgumentHelp(
      "Only if this value stands there: JSON, or with --text a string.", valueName: "value"),
    transform: ArgumentOrder.unmarked)
  var expected: String?

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    if expected == "-", arguments.json == "-" {
      throw ValidationError("only one of the two values can come from standard input.")
    }
  }

  func action() throws -> DocumentAction {
    let path = arguments.path.path
    let set = DocumentAction.set(path, try arguments.value())
    guard let expected else { return set }
    return .transaction([
      .test(path, try JSONArgument.value(expected, isText: arguments.text)), set,
    ])
  }

  func run() async throws {
    do {
      try await perform(try action())
    } catch {
      guard expected != nil, var failure = Failure(error) else { throw error }
      // Of the two parts of a transaction that the user has not written, the first compares.
      let parts = [("transaction[0] (test): ", true), ("transaction[1] (set): ", false)]
      for (part, isTest) in parts where failure.message.contains(part) {
        failure.message = failure.message.replacing(part, with: "")
        if isTest, failure.code == Rejection.Code.badPath.name { failure.status = .differs }
      }
      throw failure
    }
  }
}

struct Merge: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Merge a patch into the value at a path (RFC 7386).",
    discussion: """
      Members that are null are removed; what is absent becomes an object.

      EXAMPLES:
        lockstep merge /lamps '{"hall": true, "attic": null}'

        $ lockstep set /lamps '{"hall": false, "attic": true}'
        revision 1
        $ lockstep merge /lamps '{"hall": true, "attic": null}'
        revision 2
        $ lockstep get /lamps
        {"hall": true}
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path: PathArgument

  @Argument(help: JSONArgument.help, transform: ArgumentOrder.unmarked)
  var json: String

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { .merge(path.path, try JSONArgument.value(json)) }
}

struct Append: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "append",
    abstract: "Append a value to the array at a path.",
    discussion: """
      An absent array counts as an empty one.

      EXAMPLES:
        lockstep append /queue '{"job": 7}'
      """)

  @OptionGroup var arguments: PathAndValue
  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { .append(arguments.path.path, try arguments.value()) }
}

struct Insert: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "insert",
    abstract: "Insert a value (as 'add' of RFC 6902).",
    discussion: """
      In front of an index of an array ('-' is its end), or as the member of an object, in place \
      of one with that name.

      EXAMPLES:
        lockstep insert /queue/0 '{"job": 8}'

        $ lockstep append /queue 7
        revision 1
        $ lockstep insert /queue/0 8
        revision 2
        $ lockstep get /queue
        [8, 7]
      """)

  @OptionGroup var arguments: PathAndValue
  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { .insert(arguments.path.path, try arguments.value()) }
}

struct Test: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "test",
    abstract: "Succeed if the value at a path is this one, else end with status 10.",
    discussion: """
      As RFC 6902 compares: numbers by their value, objects without order. The daemon compares, \
      and nothing changes.

      EXAMPLES:
        lockstep test /job/state done --text && echo ready

        $ lockstep set /job '{"state": "running"}'
        revision 1
        $ lockstep test /job/state done --text
        lockstep: rejected: expected "done", found "running" (at /job/state).
      """)

  @OptionGroup var arguments: PathAndValue
  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { .test(arguments.path.path, try arguments.value()) }
}

struct Remove: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove what stands at a path.",
    discussion: """
      EXAMPLES:
        lockstep remove /lamps/hall
      """)

  @Argument(
    help: "Where: a JSON Pointer.", completion: Completion.path, transform: PathArgument.init(_:))
  var path: PathArgument

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { .remove(path.path) }
}

struct Increment: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "increment",
    abstract: "Add to the number at a path.",
    discussion: """
      An absent number counts as 0. Integers of 64 bits are exact; a sum beyond them is rejected.

      EXAMPLES:
        lockstep increment /visits
        lockstep increment /lamps/level -5

        $ lockstep increment /visits
        revision 1
        $ lockstep increment /visits 10
        revision 2
        $ lockstep get /visits
        11
      """)

  @Argument(
    help: "Where: a JSON Pointer.", completion: Completion.path, transform: PathArgument.init(_:))
  var path: PathArgument

  @Argument(
    help: "How much: a number, perhaps negative. 1 by default.", transform: ArgumentOrder.unmarked)
  var by: String = "1"

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction {
    switch try? JSON.parse(by) {
    case let amount? where amount.kind == "number": return .increment(path.path, by: amount)
    default: throw Failure(.usage, "'\(by.shortened)' is no number to add.")
    }
  }
}

struct Move: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "move",
    abstract: "Move a value to another place (as RFC 6902).",
    discussion: """
      EXAMPLES:
        lockstep move /draft /final
      """)

  @OptionGroup var places: FromAndTo
  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction {
    .move(from: places.from.path, to: places.to.path)
  }
}

struct Copy: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy a value to another place (as RFC 6902).",
    discussion: """
      EXAMPLES:
        lockstep copy /lamps/hall /lamps/attic
      """)

  @OptionGroup var places: FromAndTo
  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction {
    .copy(from: places.from.path, to: places.to.path)
  }
}
