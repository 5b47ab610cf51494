/// A fault in a policy file, or a note about it.
public struct PolicyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The path of the file.
  public let file: String
  /// The faulty line, counted from 1; nil when no particular line is at fault.
  public let line: Int?
  /// What is wrong and what to do, for the author of the file.
  public let message: String

  init(_ file: String, _ line: Int? = nil, _ message: String) {
    self.file = file
    self.line = line
    self.message = message
  }

  public var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(message)" }
}
