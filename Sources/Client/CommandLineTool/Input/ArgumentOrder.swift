/// Allows arguments in more places, and with more beginnings, than the parser does.
enum ArgumentOrder {
  private static let withValue: Set = ["--socket", "--timeout", "--label"]
  private static let withoutValue: Set = ["--json", "--no-color"]

  /// Put in front of a value that begins with "-", so that the parser does not take it for an
  /// option: the last of the private characters, which no person types.
  private static let mark = "\u{10FFFD}"

  /// The arguments with global options moved after the command, an alias spelled out, and values
  /// that look like options marked: negative numbers, and, if values are data, words with one dash,
  /// because `-h` is the only option with one.
  static func arranged(_ arguments: [String]) -> [String] {
    let index = countOfGlobals(arguments)
    let isCommand = index < arguments.count && !arguments[index].hasPrefix("-")
    guard isCommand else { return Array(arguments[index...] + arguments[..<index]) }
    let words = CommandNames.aliases[arguments[index]] ?? [arguments[index]]
    let rest = arguments[(index + 1)...]
    // Help needs no daemon.
    if words == ["help"] { return words + rest.map { CommandNames.aliases[$0]?[0] ?? $0 } }
    return markValues(words + arguments[..<index] + rest)
  }

  /// The number of arguments before the command that are global options and their values.
  private static func countOfGlobals(_ arguments: [String]) -> Int {
    var index = 0
    while index < arguments.count, isGlobal(arguments[index]) {
      index += withValue.contains(arguments[index]) ? 2 : 1
    }
    return min(index, arguments.count)
  }

  /// Whether an argument is a global option, perhaps with its value.
  static func isGlobal(_ argument: String) -> Bool {
    let name = argument.split(separator: "=", maxSplits: 1).first.map(String.init) ?? ""
    return withoutValue.contains(argument) || withValue.contains(name)
  }

  /// The commands whose values are data, and may begin with anything.
  private static let taking: Set = [
    "append", "increment", "insert", "merge", "send", "set", "test", "watch",
  ]

  private static func markValues(_ arguments: [String]) -> [String] {
    let takesWords = arguments.first.map(taking.contains) ?? false
    var isBehindAll = false
    return arguments.map { argument in
      if argument == "--" { isBehindAll = true }
      guard argument.hasPrefix("-"), !isBehindAll, let second = argument.utf8.dropFirst().first
      else {
        return argument
      }
      let isNumber = UInt8(ascii: "0")...UInt8(ascii: "9") ~= second
      let isWord = takesWords && second != UInt8(ascii: "-") && argument != "-h"
      return isNumber || isWord ? mark + argument : argument
    }
  }

  /// A message of the parser, which may quote values, without the marks.
  static func unmarkedAll(_ text: String) -> String { text.replacing(mark, with: "") }

  /// A value as it was written.
  static func unmarked(_ argument: String) -> String {
    argument.hasPrefix(mark) ? String(argument.dropFirst()) : argument
  }
}
