public import Values

/// The reasons why values under one schema cannot be read under another.
public struct SchemaMismatch: Error, Hashable, Sendable, CustomStringConvertible {
  /// The first differences, each with its location and both types:
  /// `state.todos[].title is text in the daemon and integer here`.
  public var differences: [String]

  public init(_ differences: [String]) { self.differences = differences }

  /// The maximum number of reported differences.
  static let most = 5

  public var description: String { differences.joined(separator: "; ") }
}

/// How a client uses the schema of its daemon.
public enum SchemaUse: Sendable {
  /// Not at all: the client's types have the daemon's numbers, or the state is a document.
  case ignore
  /// The client shows the state by names, as a document: structs as objects, cases as `"name"` or
  /// `{"name": fields}`. Paths name fields, too. Actions are sent as they are given.
  case names
  /// The client was built with this schema: fields and cases are matched by their names.
  case expected(Schema)

  /// The schema that the client was built with.
  public var expected: Schema? { if case .expected(let schema) = self { schema } else { nil } }
}
