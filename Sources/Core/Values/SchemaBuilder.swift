/// Collects the definitions of a schema, type by type, so that types may refer to each other and
/// to themselves.
public struct SchemaBuilder {
  private var names: [ObjectIdentifier: String] = [:]
  /// The definitions so far, by name.
  public private(set) var types: [String: Schema.Definition] = [:]

  public init() {}

  /// The kind of a type with a definition, which is made when the type is first encountered. If
  /// another type already has the name, a number is appended to it.
  public mutating func kind<T>(
    of type: T.Type, named name: String,
    _ definition: (inout SchemaBuilder) -> Schema.Definition
  ) -> Schema.Kind {
    if let known = names[ObjectIdentifier(type)] { return .type(known) }
    var unique = name
    var number = 2
    while types[unique] != nil {
      unique = "\(name) \(number)"
      number += 1
    }
    names[ObjectIdentifier(type)] = unique
    // The name is reserved before the members are visited, which may have the same name.
    types[unique] = .structure([])
    types[unique] = definition(&self)
    return .type(unique)
  }

  /// The kind of a type that a case carries.
  public mutating func kind<T: Synchronizable>(of type: T.Type) -> Schema.Kind {
    T.schemaKind(in: &self)
  }

  /// A field, with the kind of the property that a key path leads to.
  public mutating func field<Root, T: Synchronizable>(
    _ id: Int, _ name: String, _ property: KeyPath<Root, T>, hasDefault: Bool = false
  ) -> Schema.Field {
    Schema.Field(id, name, T.schemaKind(in: &self), hasDefault: hasDefault)
  }
}

extension Schema {
  /// The schema of a state and its actions; `action` returns the kind of the actions.
  public init<State: Synchronizable>(
    state: State.Type, action: (inout SchemaBuilder) -> Kind
  ) {
    var builder = SchemaBuilder()
    let state = State.schemaKind(in: &builder)
    let action = action(&builder)
    self.init(state: state, action: action, types: builder.types)
  }
}
