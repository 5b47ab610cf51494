import Documents
import EventLoop

/// The other names of commands, and the errors for unknown names.
enum CommandNames {
  /// Names that commands have in other tools, and the commands here.
  static let aliases: [String: [String]] = [
    "del": ["remove"], "delete": ["remove"], "dir": ["ls"], "info": ["status"],
    "monitor": ["log", "--follow"], "put": ["set"], "rm": ["remove"],
  ]

  /// The aliases as a section of the help.
  static var help: String {
    let width = aliases.keys.map(\.count).max() ?? 0
    let lines = aliases.sorted { $0.key < $1.key }.map { name, words in
      let space = String(repeating: " ", count: width - name.count)
      return "  \(name)\(space)  lockstep \(words.joined(separator: " "))"
    }
    return "OTHER NAMES:\n" + lines.joined(separator: "\n")
  }

  /// Throws unless the arguments, a command first, name a command or ask the parser for something.
  static func check(_ arguments: [String]) throws(Failure) {
    guard let name = arguments.first, !ArgumentOrder.isGlobal(name) else {
      throw Failure(.usage, "name a command, as in 'lockstep get'. See 'lockstep --help'.")
    }
    if name.hasPrefix("-") { return try check(option: name) }
    try check(name)
    // The parser would show the whole help.
    if name == "help", let topic = arguments.dropFirst().first(where: { !$0.hasPrefix("-") }) {
      try check(topic)
    }
  }

  private static func check(option: String) throws(Failure) {
    guard ["-v", "-V", "--v"].contains(option) else { return }
    throw Failure(.usage, "there is no option '\(option)'; the version is 'lockstep --version'.")
  }

  private static func check(_ name: String) throws(Failure) {
    if LockstepCommand.commandNames.contains(name) { return }
    throw Failure(
      .usage, "there is no command '\(name.shortened)'.\(hint(for: name)) See 'lockstep --help'.")
  }

  /// A question about a command that was probably mistyped, after a space; empty if there is none.
  static func hint(for name: String) -> String {
    if name == "version" { return " The version is 'lockstep --version'." }
    let names = LockstepCommand.commandNames + aliases.keys.sorted()
    guard let near = name.nearest(among: names) else { return "" }
    return " Did you mean '\(near)'?"
  }
}
