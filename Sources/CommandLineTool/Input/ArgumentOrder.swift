/// Where arguments may stand, beyond what the parser allows.
enum ArgumentOrder {
  private static let withValue: Set = ["--socket", "--timeout", "--label"]
  private static let withoutValue: Set = ["--json", "--no-color"]

  /// The arguments with global options moved behind the command, and negative numbers marked as
  /// values: a space in front of a number is no part of it in JSON.
  static func arranged(_ arguments: [String]) -> [String] {
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      let name = argument.split(separator: "=", maxSplits: 1).first.map(String.init) ?? ""
      if withoutValue.contains(argument) || withValue.contains(name) && argument != name {
        index += 1
      } else if withValue.contains(argument) && index + 1 < arguments.count {
        index += 2
      } else {
        break
      }
    }
    let isCommand = index < arguments.count && !arguments[index].hasPrefix("-")
    guard isCommand else { return markNegatives(arguments) }
    return markNegatives([arguments[index]] + arguments[..<index] + arguments[(index + 1)...])
  }

  private static func markNegatives(_ arguments: [String]) -> [String] {
    arguments.map { argument in
      let bytes = argument.utf8
      guard bytes.first == UInt8(ascii: "-"), let second = bytes.dropFirst().first,
        second >= UInt8(ascii: "0") && second <= UInt8(ascii: "9")
      else { return argument }
      return " " + argument
    }
  }
}
