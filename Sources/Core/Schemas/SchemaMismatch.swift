public import Values

/// Why values under one schema cannot be read under another.
public struct SchemaMismatch: Error, Hashable, Sendable, CustomStringConvertible {
  /// The first of the differences, each with its place and both types:
  /// `state.todos[].title is text in the daemon and integer here`.
  public var differences: [String]

  public init(_ differences: [String]) { self.differences = differences }

  /// How many differences are told.
  static let most = 5

  public var description: String { differences.joined(separator: "; ") }
}

/// What a client does with the schema of its daemon.
public enum SchemaUse: Sendable {
  /// Nothing: what it mirrors is numbered as the daemon's state, or is a document.
  case ignore
  /// It shows the state by names, as a document: structs as objects, cases as `"name"` or
  /// `{"name": fields}`. Paths name fields, too. Actions travel as they are given.
  case names
  /// It was built with this schema: fields and cases are matched by their names.
  case expected(Schema)

  /// The schema that it was built with.
  public var expected: Schema? { if case .expected(let schema) = self { schema } else { nil } }
}
