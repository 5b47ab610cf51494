/// The parser's help for a command.
enum HelpText {
  private static let global = "GLOBAL OPTIONS:"
  private static let own = "OPTIONS:"

  /// The help with a command's own options in front of those that every command has.
  static func arranged(_ text: String) -> String {
    var blocks = text.components(separatedBy: isHeading)
    guard let first = blocks.firstIndex(where: { $0.first == global }),
      let second = blocks.firstIndex(where: { $0.first == own }), first < second
    else { return text }
    // Each block ends with an empty line but the last.
    if blocks[second].last != "" { blocks[second].append("") }
    blocks.append(blocks.remove(at: first))
    while blocks[blocks.count - 1].last == "" { blocks[blocks.count - 1].removeLast() }
    return blocks.joined().joined(separator: "\n") + (text.hasSuffix("\n") ? "\n" : "")
  }

  private static func isHeading(_ line: Substring) -> Bool {
    line.hasSuffix(":") && line == line.uppercased() && !line.hasPrefix(" ")
  }
}

extension String {
  /// The lines in blocks; each block but the first begins with a line that `isFirst` accepts.
  fileprivate func components(separatedBy isFirst: (Substring) -> Bool) -> [[String]] {
    var blocks: [[String]] = [[]]
    for line in split(separator: "\n", omittingEmptySubsequences: false) {
      if isFirst(line) { blocks.append([]) }
      blocks[blocks.count - 1].append(String(line))
    }
    return blocks
  }
}
