import ArgumentParser
import Documents
import EventLoop
import Testing
import Values

@testable import CommandLineTool

struct CommandNamesTests {
  private func message(_ arguments: String...) -> String? {
    do throws(Failure) {
      try CommandNames.check(ArgumentOrder.arranged(arguments))
      return nil
    } catch {
      return error.status == .usage ? error.message : "status \(error.status)"
    }
  }

  @Test func `the names that other tools use for a command are aliases`() throws {
    #expect(ArgumentOrder.arranged(["rm", "/a"]) == ["remove", "/a"])
    #expect(ArgumentOrder.arranged(["--json", "put", "/n", "-5"]).first == "set")
    let set = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["put", "/n", "-5"]))
    #expect(try (set as? SetValue)?.action() == .set(["n"], -5))
    let log = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["monitor", "--tree"]))
    #expect((log as? Log)?.follow == true)
    #expect(ArgumentOrder.arranged(["help", "dir"]) == ["help", "ls"])
    for words in CommandNames.aliases.values {
      #expect(LockstepCommand.commandNames.contains(words[0]))
    }
    for name in CommandNames.aliases.keys {
      #expect(!LockstepCommand.commandNames.contains(name))
    }
  }

  @Test(arguments: [
    ("gte", " Did you mean 'get'?"), ("wacth", " Did you mean 'watch'?"),
    ("sett", " Did you mean 'set'?"), ("mege", " Did you mean 'merge'?"),
    ("incrment", " Did you mean 'increment'?"),
    ("incremetn", " Did you mean 'increment'?"), ("web", ""), ("shell", ""), ("x", ""),
    ("version", " The version is 'lockstep --version'."),
  ])
  func `a mistyped command gets a suggestion, and a short unknown word gets none`(
    name: String, hint: String
  ) {
    #expect(CommandNames.hint(for: name) == hint)
  }

  @Test func `an unknown or missing command is a usage error with advice`() {
    #expect(message("nope")?.hasPrefix("there is no command 'nope'.") == true)
    #expect(message("help", "nope")?.hasPrefix("there is no command 'nope'.") == true)
    #expect(message("help", "get") == nil)
    #expect(message("--socket", "/s", "help", "get") == nil)
    #expect(message("help") == nil)
    for arguments in [["--socket"], ["--socket", "/run/x"], ["--json"], ["--label", "get"]] {
      let arranged = ArgumentOrder.arranged(arguments)
      #expect {
        try CommandNames.check(arranged)
      } throws: {
        ($0 as? Failure)?.message.hasPrefix("name a command") == true
      }
    }
    #expect(message("-v")?.contains("'lockstep --version'") == true)
    #expect(message("--version") == nil)
    #expect(message("--json", "--help") == nil)
  }

  @Test func `a suggestion of the parser that is far from the argument is left out`() {
    let far = "lockstep: Unknown option '--nope'. Did you mean '--mode'?\nUsage: x"
    #expect(far.withoutFarGuess == "lockstep: Unknown option '--nope'.\nUsage: x")
    let near = "Unknown option '--sokcet'. Did you mean '--socket'?"
    #expect(near.withoutFarGuess == near)
    #expect("Unknown option '--nope'".withoutFarGuess == "Unknown option '--nope'")
  }

  // MARK: Help

  private static let commands =
    LockstepCommand.configuration.groupedSubcommands.flatMap(\.subcommands)

  @Test func `the help lists a command's own options before the global options`() throws {
    for command in Self.commands {
      let help = HelpText.arranged(LockstepCommand.helpMessage(for: command, columns: 80))
      let own = try #require(help.firstRange(of: "\nOPTIONS:\n"))
      let global = try #require(help.firstRange(of: "\n\nGLOBAL OPTIONS:\n"))
      #expect(own.lowerBound < global.lowerBound, "\(help)")
      #expect(!help.contains("\n\n\n") && !help.hasSuffix("\n\n"), "\(help)")
    }
  }

  @Test func `arranging the help loses no line`() {
    for command in Self.commands {
      let help = LockstepCommand.helpMessage(for: command, columns: 80)
      let lines = help.split(separator: "\n").sorted()
      #expect(HelpText.arranged(help).split(separator: "\n").sorted() == lines)
    }
  }

  @Test func `every command with choices has an example, and the parser accepts each example`()
    throws
  {
    for command in Self.commands {
      let discussion = command.configuration.discussion
      let name = command.configuration.commandName ?? ""
      if ["limits", "schema"].contains(name) { continue }
      let examples = discussion.split(separator: "\n").filter { $0.hasPrefix("  lockstep ") }
      let whole = discussion.contains("EXAMPLES:") && !examples.isEmpty
      #expect(whole || name == "patch", "\(name)")
      for example in examples {
        let words = Self.words(String(example.dropFirst(11)))
        #expect(throws: Never.self, "\(example)") {
          try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(words))
        }
      }
    }
  }

  /// The words of a command line, split as a shell does, up to a pipe or redirection.
  private static func words(_ line: String) -> [String] {
    var words: [String] = []
    var word: String?
    var isQuoted = false
    for character in line {
      if character == "'" {
        isQuoted.toggle()
        word = word ?? ""
      } else if character == " ", !isQuoted {
        if let word { words.append(word) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    if let word { words.append(word) }
    return Array(words.prefix { !["|", "&&"].contains($0) && !$0.hasPrefix(">") })
  }
}
