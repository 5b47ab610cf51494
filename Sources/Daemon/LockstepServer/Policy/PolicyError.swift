/// Why a policy file cannot be used.
public struct PolicyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The path of the file.
  public let file: String
  /// The line that is at fault, from 1 on; nil when it is none in particular.
  public let line: Int?
  /// What is wrong and what to do, for whoever wrote the file.
  public let message: String

  init(_ file: String, _ line: Int? = nil, _ message: String) {
    self.file = file
    self.line = line
    self.message = message
  }

  public var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(message)" }
}
