import Documents
import EventLoop
import Values

/// An action as people write it on a command line, in the form that `ActionJSON` reads.
///
///     {"todos": {"add": "milk"}}        JSON
///     counter.incrTapped                the names of the cases, from the outermost one
///     todos.add milk                    then what the last one carries, in order
///     resize width=640 height=480       or by name
///     beds.water 3 60                   what an outer one carries beside the action comes first
///     beds 3 water 60                   or stands where the outer one has it
///
/// A value that is optional or has a default may be left out.
struct ActionArgument {
  private let schema: Schema

  /// The cases around a value: their names, and the fields that they carry beside it.
  private struct Context {
    var names: [String] = []
    var fields: [Schema.Field] = []

    var name: String { names.joined(separator: ".") }

    func inside(_ name: String) -> Context { Context(names: names + [name], fields: fields) }

    func behind(_ fields: some Sequence<Schema.Field>) -> Context {
      Context(names: names, fields: self.fields + fields)
    }
  }

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
    return try parser.action(
      names(in: first)[...], schema.action, in: Context(), Array(words.dropFirst()))
  }

  /// Whether a word is JSON. Names of cases begin with none of these characters, or are not JSON.
  private static func isJSON(_ word: String) -> Bool {
    guard let first = word.utf8.first else { return true }
    return "{[\"-0123456789 \n\t".utf8.contains(first)
  }

  /// Whether a word that is not JSON was meant to be: the beginning of an object, an array or a string, or a
  /// whole number that does not fit.
  private static func isBrokenJSON(_ word: String) -> Bool {
    guard let first = word.utf8.first else { return false }
    if "{[\"".utf8.contains(first) { return true }
    let digits = word.utf8.drop { $0 == UInt8(ascii: "-") }
    return digits.count >= word.utf8.count - 1 && digits.count > 1
      && digits.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
  }

  /// The names of cases in a word. Never empty.
  private static func names(in word: String) -> [String] {
    word.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  // MARK: Names

  /// The case of the first name, which contains the cases of the other names.
  private func action(
    _ names: ArraySlice<String>, _ kind: Schema.Kind, in context: Context, _ words: [String]
  ) throws(Failure) -> Value {
    guard let cases = cases(of: kind), let name = names.first else {
      throw Failure(.usage, "\(context.name) carries \(kind.text), which has no cases.")
    }
    let item = try find(name, in: cases, under: context.names)
    let inside = context.inside(name)
    guard names.count > 1 else { return try content(of: item, inside, words) }
    guard let last = item.fields.last, item.fields.count == 1 || self.cases(of: last.kind) != nil
    else {
      throw Failure(
        .usage,
        item.fields.isEmpty
          ? "\(inside.name) carries nothing, so there is nothing under it."
          : "\(inside.name) carries several values: write \(usage(item, inside)).")
    }
    guard let (outer, rest) = divide(words, item) else { throw needsMore(item, inside) }
    return try nest(names.dropFirst(), outer, item, inside, rest)
  }

  /// The case with an action of these names as its last value, and `outer` before it.
  private func nest(
    _ names: ArraySlice<String>, _ outer: [String?], _ item: Schema.Case, _ context: Context,
    _ words: [String]
  ) throws(Failure) -> Value {
    var values: [Value?] = []
    for (word, field) in zip(outer, item.fields) {
      guard let word else {
        values.append(nil)
        continue
      }
      values.append(try value(word, field.kind, context.name))
    }
    let behind = context.behind(item.fields.dropLast())
    // Invariant: the case carries an action, so it has a last field.
    if let last = item.fields.last {
      values.append(try action(names, last.kind, in: behind, words))
    }
    return Self.value(of: item, values)
  }

  /// The words for all fields of a case but the last, and the other words, which are for the last;
  /// nil if a field that may not be left out has no word.
  private func divide(
    _ words: [String], _ item: Schema.Case
  ) -> (outer: [String?], rest: [String])? {
    let fields = item.fields.dropLast()
    var outer = [String?](repeating: nil, count: fields.count)
    var rest: [String] = []
    for word in words {
      if let (index, text) = named(word, in: fields) {
        outer[index] = text
      } else {
        rest.append(word)
      }
    }
    for index in outer.indices where outer[index] == nil && !rest.isEmpty {
      outer[index] = rest.removeFirst()
    }
    let isWhole = zip(outer, fields).allSatisfy { $0 != nil || $1.mayBeLeftOut }
    return isWhole ? (outer, rest) : nil
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
    of item: Schema.Case, _ context: Context, _ words: [String]
  ) throws(Failure) -> Value {
    if item.fields.isEmpty {
      if words.isEmpty { return .text(item.name) }
      throw Failure(
        .usage, "\(context.name) carries nothing: what is '\(words[0].shortened)'?")
    }
    if let value = try actionWithin(item, context, words) { return value }
    if let structure = try structure(words, item.fields) {
      return Self.value(of: item, [structure])
    }
    return Self.value(of: item, try assign(words, item, context))
  }

  /// The case with an action as its last value, if the words name one there.
  private func actionWithin(
    _ item: Schema.Case, _ context: Context, _ words: [String]
  ) throws(Failure) -> Value? {
    guard let last = item.fields.last, let cases = cases(of: last.kind),
      let (outer, rest) = divide(words, item), let word = rest.first
    else { return nil }
    let names = Self.names(in: word)
    guard cases.contains(where: { String.isSame($0.name, names[0]) }) else { return nil }
    return try nest(names[...], outer, item, context, Array(rest.dropFirst()))
  }

  /// The case with these values of its fields; nil for those left out.
  private static func value(of item: Schema.Case, _ values: [Value?]) -> Value {
    guard item.fields.allSatisfy(\.isUnnamed) else {
      return .object([item.name: object(item.fields, values)])
    }
    let last = values.lastIndex { $0 != nil } ?? -1
    let list = zip(values, item.fields).enumerated()
      .filter { $0.offset <= last || !$0.element.1.hasDefault }.map { $0.element.0 ?? .null }
    if item.fields.count == 1 {
      return list.isEmpty ? .text(item.name) : .object([item.name: list[0]])
    }
    return .object([item.name: .array(TreeArray(list))])
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
    _ words: [String], _ item: Schema.Case, _ context: Context
  ) throws(Failure) -> [Value?] {
    let fields = item.fields
    var values = [Value?](repeating: nil, count: fields.count)
    let isByName = words.contains { named($0, in: fields[...]) != nil }
    for word in words {
      if isByName, let name = Self.strangeName(in: word, among: fields) {
        throw Failure(
          .usage,
          "\(context.name) carries no \"\(name.shortened)\": \(usage(item, context))."
            + name.hint(among: fields.map(\.name)))
      }
      let (index, text) = try place(of: word, values, item, context)
      values[index] = try value(text, fields[index].kind, context.name)
    }
    for (field, value) in zip(fields, values) where value == nil && !field.mayBeLeftOut {
      throw needsMore(item, context)
    }
    return values
  }

  private func needsMore(_ item: Schema.Case, _ context: Context) -> Failure {
    Failure(.usage, "\(context.name) needs more: \(usage(item, context)).")
  }

  private func place(
    of word: String, _ values: [Value?], _ item: Schema.Case, _ context: Context
  ) throws(Failure) -> (Int, String) {
    if let place = named(word, in: item.fields[...]) { return place }
    guard let next = values.firstIndex(where: { $0 == nil }) else {
      throw Failure(.usage, "'\(word.shortened)' is too much: \(usage(item, context)).")
    }
    return (next, word)
  }

  /// The index of the field that a word names, and its text: `width=640`.
  private func named(
    _ word: String, in fields: ArraySlice<Schema.Field>
  ) -> (index: Int, text: String)? {
    guard
      let index = fields.firstIndex(where: { !$0.isUnnamed && word.hasPrefix("\($0.name)=") })
    else { return nil }
    return (index, String(word.dropFirst(fields[index].name.count + 1)))
  }

  /// The name in front of the first '=' of a word, if it can be one and is that of no field. Beside others
  /// that are given by name it is a mistake, and not a text.
  private static func strangeName(in word: String, among fields: [Schema.Field]) -> String? {
    guard let end = word.firstIndex(of: "="), let first = word.first, first.isLetter else {
      return nil
    }
    let name = String(word[..<end])
    let isName = name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
    return isName && !fields.contains { String.isSame($0.name, name) } ? name : nil
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
    case .value:
      do {
        return try JSON.parse(word)
      } catch {
        if !Self.isBrokenJSON(word) { return .text(word) }
        throw Failure(
          .usage,
          "\(place): '\(word.shortened)' is not JSON: \(error). A text that begins so has quotes of its "
            + "own: '\(JSON.text(.text(word.shortened)))'.")
      }
    case .bool, .integer, .unsigned, .double, .array, .map, .type:
      let problem: JSONError
      do {
        return try JSON.parse(word)
      } catch {
        problem = error
      }
      if let cases = cases(of: kind) {
        // A case that carries nothing, or nothing that may not be left out.
        let names = Self.names(in: word)
        if cases.contains(where: { String.isSame($0.name, names[0]) }) {
          return try action(names[...], kind, in: Context(), [])
        }
        throw Failure(
          .usage,
          Schema.sentence(
            "\(place): \"\(word.shortened)\" is no \(kind.text); there are", cases.map(\.name)))
      }
      // What begins as JSON has its own mistake.
      throw Failure(
        .usage,
        "\(place) carries \(kind.text), and '\(word.shortened)' is not JSON for one"
          + (Self.isJSON(word) ? ": \(problem)." : "."))
    }
  }

  /// How the action is written.
  private func usage(_ item: Schema.Case, _ context: Context) -> String {
    let fields = (context.fields + item.fields).map { field in
      let name = field.isUnnamed ? "" : "\(field.name)="
      let text = "\(name)<\(field.kind.present.text)>"
      return field.mayBeLeftOut ? "[\(text)]" : text
    }
    return "'\(([context.name] + fields).joined(separator: " "))'"
  }
}
