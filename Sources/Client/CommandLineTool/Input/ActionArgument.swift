import Documents
import EventLoop
import Values

/// An action as people write it on a command line, in the form that `ActionJSON` reads.
///
///     {"todos": {"add": "milk"}}        JSON
///     counter.incrTapped                the names of the cases, from the outermost one
///     todos.add milk                    then what the last one carries, in order
///     resize width=640 height=480       or by name
struct ActionArgument {
  private let schema: Schema

  /// The action that the words describe.
  static func value(_ words: [String], schema: Schema) throws(Failure) -> Value {
    guard let first = words.first else { throw Failure(.usage, "name an action.") }
    if isJSON(first) {
      guard words.count == 1 else {
        throw Failure(
          .usage, "an action in JSON is whole: what is '\(words[1].shortened)' behind it?")
      }
      return try JSONArgument.value(first)
    }
    let parser = ActionArgument(schema: schema)
    let names = first.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return try parser.action(names[...], schema.action, under: [], Array(words.dropFirst()))
  }

  /// Whether a word is JSON. Names of cases begin with none of these characters, or are not JSON.
  private static func isJSON(_ word: String) -> Bool {
    guard let first = word.utf8.first else { return true }
    return "{[\"-0123456789 \n\t".utf8.contains(first)
  }

  // MARK: Names

  /// The case of the first name, which contains the cases of the other names.
  private func action(
    _ names: ArraySlice<String>, _ kind: Schema.Kind, under parents: [String], _ words: [String]
  ) throws(Failure) -> Value {
    guard let cases = cases(of: kind), let name = names.first else {
      throw Failure(
        .usage, "\(parents.joined(separator: ".")) carries \(kind.text), which has no cases.")
    }
    let item = try find(name, in: cases, under: parents)
    let path = parents + [name]
    guard names.count > 1 else { return try content(of: item, path, words) }
    guard item.fields.count == 1 else {
      throw Failure(
        .usage,
        item.fields.isEmpty
          ? "\(path.joined(separator: ".")) carries nothing, so there is nothing under it."
          : "\(path.joined(separator: ".")) carries several values: write \(usage(item, path)).")
    }
    let inner = try action(names.dropFirst(), item.fields[0].kind, under: path, words)
    return .object([name: item.fields[0].isUnnamed ? inner : .object([item.fields[0].name: inner])])
  }

  private func cases(of kind: Schema.Kind) -> [Schema.Case]? {
    switch kind {
    case .optional(let wrapped): return cases(of: wrapped)
    case .type(let name):
      guard case .enumeration(let cases)? = schema.types[name] else { return nil }
      return cases
    case .bool, .integer, .unsigned, .double, .text, .bytes, .value, .path, .array, .map:
      return nil
    }
  }

  private func find(
    _ name: String, in cases: [Schema.Case], under parents: [String]
  ) throws(Failure) -> Schema.Case {
    if let item = cases.first(where: { String.isSame($0.name, name) }) { return item }
    let names = cases.map(\.name)
    let whole = (parents + [name]).joined(separator: ".").shortened
    let place = parents.isEmpty ? "" : "under \(parents.joined(separator: ".")) "
    throw Failure(
      .usage,
      Schema.sentence("there is no action \"\(whole)\"; \(place)there are", names)
        + name.hint(among: names))
  }

  // MARK: Payloads

  private func content(
    of item: Schema.Case, _ path: [String], _ words: [String]
  ) throws(Failure) -> Value {
    if item.fields.isEmpty {
      if words.isEmpty { return .text(item.name) }
      throw Failure(
        .usage,
        "\(path.joined(separator: ".")) carries nothing: what is '\(words[0].shortened)'?")
    }
    let values = try assign(words, item.fields, item, path)
    if item.fields.allSatisfy(\.isUnnamed) {
      let list = values.map { $0 ?? .null }
      return .object([item.name: list.count == 1 ? list[0] : .array(TreeArray(list))])
    }
    return .object([item.name: Self.object(item.fields, values)])
  }

  private static func object(_ fields: [Schema.Field], _ values: [Value?]) -> Value {
    var members = TrieMap<String, Value>()
    for (field, value) in zip(fields, values) {
      if let value { members.updateValue(value, forKey: field.name) }
    }
    return .object(members)
  }

  /// The words as the values of fields, in order or by name; nil for those left out.
  private func assign(
    _ words: [String], _ fields: [Schema.Field], _ item: Schema.Case, _ path: [String]
  ) throws(Failure) -> [Value?] {
    if let structure = try structure(words, fields) { return [structure] }
    var values = [Value?](repeating: nil, count: fields.count)
    for word in words {
      let (index, text) = try place(of: word, in: fields, values, item, path)
      values[index] = try value(text, fields[index].kind, "\(path.joined(separator: "."))")
    }
    for (field, value) in zip(fields, values) where value == nil && !field.kind.isOptional {
      throw Failure(.usage, "\(path.joined(separator: ".")) needs more: \(usage(item, path)).")
    }
    return values
  }

  private func place(
    of word: String, in fields: [Schema.Field], _ values: [Value?], _ item: Schema.Case,
    _ path: [String]
  ) throws(Failure) -> (Int, String) {
    let named = fields.firstIndex { !$0.isUnnamed && word.hasPrefix("\($0.name)=") }
    if let named { return (named, String(word.dropFirst(fields[named].name.count + 1))) }
    guard let next = values.firstIndex(where: { $0 == nil }) else {
      throw Failure(
        .usage,
        "'\(word.shortened)' is too much: \(usage(item, path)).")
    }
    return (next, word)
  }

  /// The value of a case that carries one struct, when its fields are given by name.
  private func structure(
    _ words: [String], _ fields: [Schema.Field]
  ) throws(Failure) -> Value? {
    guard fields.count == 1, fields[0].isUnnamed, !words.isEmpty,
      case .type(let name) = fields[0].kind, case .structure(let members)? = schema.types[name]
    else { return nil }
    var values = [Value?](repeating: nil, count: members.count)
    for word in words {
      guard let index = members.firstIndex(where: { word.hasPrefix("\($0.name)=") }) else {
        return nil
      }
      let text = String(word.dropFirst(members[index].name.count + 1))
      values[index] = try value(text, members[index].kind, members[index].name)
    }
    return Self.object(members, values)
  }

  /// The value of this kind that a word denotes.
  private func value(
    _ word: String, _ kind: Schema.Kind, _ place: String
  ) throws(Failure) -> Value {
    switch kind {
    case .text, .path, .bytes: return .text(word)
    case .optional(let wrapped):
      return word == "null" ? .null : try value(word, wrapped, place)
    case .value: return (try? JSON.parse(word)) ?? .text(word)
    case .bool, .integer, .unsigned, .double, .array, .map, .type:
      if let value = try? JSON.parse(word) { return value }
      if let cases = cases(of: kind) {
        // A case without fields, or with such cases inside.
        let names = word.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        if cases.contains(where: { String.isSame($0.name, names[0]) }) {
          return try action(names[...], kind, under: [], [])
        }
        throw Failure(
          .usage,
          Schema.sentence(
            "\(place): \"\(word.shortened)\" is no \(kind.text); there are", cases.map(\.name)))
      }
      throw Failure(
        .usage, "\(place) carries \(kind.text), and '\(word.shortened)' is not JSON for one.")
    }
  }

  /// How the action is written.
  private func usage(_ item: Schema.Case, _ path: [String]) -> String {
    let fields = item.fields.map { field in
      let text = field.isUnnamed ? "" : "\(field.name)="
      guard case .optional(let kind) = field.kind else { return "\(text)<\(field.kind.text)>" }
      return "[\(text)<\(kind.text)>]"
    }
    return "'\(([path.joined(separator: ".")] + fields).joined(separator: " "))'"
  }
}

extension Schema.Kind {
  fileprivate var isOptional: Bool { if case .optional = self { true } else { false } }
}
