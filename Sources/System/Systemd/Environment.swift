internal import Glibc

/// The environment variables in which a service manager passes its settings to a service.
public struct Environment: Sendable, ExpressibleByDictionaryLiteral {
  private let variables: [String: String]

  /// Variables as they are given. In a literal, the first of two equal names counts, as for
  /// `getenv`.
  public init(_ variables: [String: String]) { self.variables = variables }

  public init(dictionaryLiteral elements: (String, String)...) {
    variables = Dictionary(elements) { first, _ in first }
  }

  /// The current values of the variables that this module reads.
  ///
  /// Bytes that are not UTF-8 are repaired, so a path that contains some is not found.
  public static var process: Environment {
    var variables: [String: String] = [:]
    for name in managerVariables + directoryVariables {
      if let value = getenv(name) { variables[name] = String(cString: value) }
    }
    return Environment(variables)
  }

  /// The value of a variable; nil if it is not set, or set to nothing.
  public subscript(name: String) -> String? {
    guard let value = variables[name], !value.isEmpty else { return nil }
    return value
  }

  /// Remove the manager's variables from this process's environment, so that no child takes them
  /// for its own.
  ///
  /// Call it before other threads start, and after everything in this module has been initialised:
  /// the C library does not allow reading the environment while it changes.
  public static func removeManagerVariables() {
    for name in managerVariables { unsetenv(name) }
  }

  static let activationVariables = ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"]

  private static let managerVariables =
    activationVariables + ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "JOURNAL_STREAM"]
  private static let directoryVariables = ["STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"]
}

/// A manager's variable whose value is malformed.
public struct EnvironmentError: Error, Equatable, CustomStringConvertible {
  /// The variable's name.
  public let variable: String
  /// The variable's value.
  public let value: String
  /// The expected form, as it follows the word "expected".
  public let expected: String

  public var description: String { "$\(variable) is \"\(value)\": expected \(expected)" }
}

extension Environment {
  /// The number in a variable, nil if it is not set. Digits only: no sign, no space.
  func number<Number: FixedWidthInteger>(_ name: String) throws(EnvironmentError) -> Number? {
    guard let value = self[name] else { return nil }
    guard let number = Number(digits: value) else {
      throw EnvironmentError(
        variable: name, value: value, expected: "a number from 0 to \(Number.max)")
    }
    return number
  }
}

extension FixedWidthInteger {
  /// The number written in decimal digits; nil for any other text, and for a number that does not
  /// fit.
  init?(digits text: some StringProtocol) {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Self(text)
    else { return nil }
    self = number
  }
}
