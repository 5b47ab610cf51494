import Documents
import EventLoop
import Values

// A typed state has fields of fixed names, so that a path can be checked before a client waits for
// a value that can never exist; and a number can be a map's key, where in a document it would be an
// array's index.
extension PathArgument {
  /// The path with the part that a subscription can follow: through fields and maps, not into
  /// arrays. Throws, with the alternatives, when it names a field that the state does not have.
  func resolved(in schema: Schema) throws(Failure) -> PathArgument {
    if schema.state == .value { return self }
    var walk = SchemaWalk(schema: schema)
    for (index, key) in path.keys.enumerated() { try walk.step(by: key, at: index) }
    return PathArgument(path, scopeCount: walk.scopeCount ?? path.keys.count)
  }
}

/// A walk along a path through the kinds of a schema.
private struct SchemaWalk {
  let schema: Schema
  /// Nil inside a value that the schema does not describe, where any key is possible.
  private var kind: Schema.Kind?
  private var walked = Path()
  /// The number of keys before the first that a subscription cannot follow.
  private(set) var scopeCount: Int?

  init(schema: Schema) {
    self.schema = schema
    kind = schema.state
  }

  mutating func step(by key: PathKey, at index: Int) throws(Failure) {
    while case .optional(let wrapped)? = kind { kind = wrapped }
    switch kind {
    case nil: break
    case .value?:
      // A document inside: a key that may be an index ends the scope, as in any other document.
      if key.mayBeIndex { endScope(index) }
    case .array(let element)?:
      guard key.arrayIndex != nil else {
        throw failure("an array, and \"\(key)\" is no index of one")
      }
      endScope(index)
      kind = element
    case .map(let keys, let value)?:
      guard keys == .text || Int64(key.description) != nil else {
        throw failure("a map with integer keys, and \"\(key)\" is none")
      }
      kind = value
    case .type(let name)?: try step(by: key, at: index, into: name)
    case .bool?, .integer?, .unsigned?, .double?, .text?, .bytes?, .path?, .optional?:
      throw failure("\(kind?.text ?? ""), which has no parts, so there is no \"\(key)\"")
    }
    walked.keys.append(key)
  }

  private mutating func endScope(_ index: Int) { scopeCount = scopeCount ?? index }

  private mutating func step(
    by key: PathKey, at index: Int, into name: String
  ) throws(Failure) {
    switch schema.types[name] {
    case .structure(let fields)?:
      guard let field = fields.first(where: { String.isSame($0.name, key.description) }) else {
        throw Failure(.absent, absence(of: key.description, fields.map(\.name)))
      }
      kind = field.kind
    case .enumeration?, nil:
      // A case is replaced as a whole; its payload is looked up in the value.
      endScope(index)
      kind = nil
    }
  }

  private func failure(_ what: String) -> Failure {
    let place = walked.keys.isEmpty ? "the state" : "\(walked.pointer)"
    return Failure(.absent, "\(place) is \(what).")
  }

  private func absence(of name: String, _ names: [String]) -> String {
    let place = walked.keys.isEmpty ? "" : " at \(walked.pointer)"
    return Schema.sentence(
      "there is no field \"\(name.shortened)\"\(place); there are", names) + name.hint(among: names)
  }
}
