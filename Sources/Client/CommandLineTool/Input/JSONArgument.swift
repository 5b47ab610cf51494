import ArgumentParser
import Documents
import EventLoop
import Values

/// A value on the command line.
enum JSONArgument {
  static let help: ArgumentHelp = "A JSON value; '-' reads it from standard input."

  /// The value of an argument, which is JSON, or, with `isText`, is the string itself. `isText` is
  /// nil if the command has no such choice.
  static func value(_ argument: String, isText: Bool? = nil) throws(Failure) -> Value {
    if argument == "-" {
      let bytes = try File.standardInput.read()
      if isText == true {
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw Failure(.usage, "standard input is not UTF-8.")
        }
        return .text(text)
      }
      return try File.standardInput.parsingJSON(bytes)
    }
    if isText == true { return .text(argument) }
    do {
      return try JSON.parse(argument)
    } catch {
      throw Failure(
        .usage,
        "\(JSON.text(.text(argument.shortened))) is not JSON: \(error)."
          + hint(argument, hasText: isText != nil))
    }
  }

  /// Advice on an argument that looks like a bare word.
  private static func hint(_ argument: String, hasText: Bool) -> String {
    let beginsJSON = "{[\"-0123456789 ".unicodeScalars
    guard let first = argument.unicodeScalars.first, !beginsJSON.contains(first) else {
      return argument.isEmpty ? " An empty string is '\"\"'." : ""
    }
    let quoted = JSON.text(.text(argument.shortened))
    return " A string has quotes of its own: '\(quoted)'\(hasText ? ", or add --text." : ".")"
  }
}

extension String {
  /// The beginning of a text that may be long.
  var shortened: String { prefix(scalars: 50, ifOverBytes: 60) }
}
