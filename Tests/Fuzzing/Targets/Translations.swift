import CBOR
import Schemas
import Values

/// A translation of any bytes is one item or an error. A state of one build of a feature becomes a
/// state of another build, and by names a document.
/// Input: the build; the target, which is another build, names, or a schema that follows; a path;
/// and the bytes to translate, which are read a second time as the choices of the `Author` of a
/// state.
func fuzzTranslation(_ given: Input) {
  var input = given
  let source = builds[Int(input.byte()) % builds.count]
  let choice = Int(input.byte()) % (builds.count + 3)
  var target = Translation.Target.names
  if choice < builds.count {
    target = .schema(builds[choice])
  } else if choice == builds.count {
    guard let schema = (input.decode { try Schema(from: &$0) }) else { return }
    target = .schema(schema)
  }
  let root = choice == builds.count + 1 ? Translation.Root.action : .state
  guard let translation = try? Translation(from: source, to: target, root: root) else { return }
  let path = input.decode { try Path(from: &$0) } ?? .root
  requireItems(from: input.bytes, by: translation, at: path)
  guard root == .state, choice != builds.count else { return }
  var author = Author(schema: source, choices: input)
  author.write(source.state)
  requireMeaning(of: author.encoder.bytes, by: translation, choice < builds.count ? choice : nil)
}

/// Requires that any bytes, as a value and as a patch, become one item or are refused.
private func requireItems(from bytes: [UInt8], by translation: Translation, at path: Path) {
  let place = translation.place(at: path)
  let whole = translated(bytes) { (decoder, encoder) throws(CBORError) in
    try translation.value(from: &decoder, into: &encoder)
  }
  let part = translated(bytes) { (decoder, encoder) throws(CBORError) in
    try translation.value(at: place, from: &decoder, into: &encoder)
  }
  var isWhole = false
  let patch = translated(bytes) { (decoder, encoder) throws(CBORError) in
    isWhole = try translation.patch(at: place, from: &decoder, into: &encoder)
  }
  for result in [whole, part, isWhole ? patch : nil] {
    guard let result else { continue }
    let item = try? CBORItem(result, depth: ampleDepth)
    require(item != nil, "an item becomes one: \(hex(result))")
  }
}

/// Requires that a state becomes a state of that build, or a document if `build` is nil, and that a
/// patch that replaces the state becomes a patch that replaces the translated state.
private func requireMeaning(of state: [UInt8], by translation: Translation, _ build: Int?) {
  let result: [UInt8]
  do throws(CBORError) {
    result = try translate(state) { (decoder, encoder) throws(CBORError) in
      try translation.value(from: &decoder, into: &encoder)
    }
  } catch {
    guard case .unknownCase = error.kind, build != nil else {
      fatalError("Broken: a state is translated: \(error) in \(hex(state))")
    }
    return
  }
  if let build {
    do throws(CBORError) {
      try CBORDecoder.read(result) { decoder throws(CBORError) in
        try readValue(builds[build].state, of: builds[build], &decoder)
      }
    } catch {
      fatalError("Broken: a state becomes a state: \(error) in \(hex(result)) of \(hex(state))")
    }
  } else {
    requireSound(decodedValue(result), "a state by names")
  }
  let patch = translated([0x81] + state) { (decoder, encoder) throws(CBORError) in
    let isWhole = try translation.patch(
      at: translation.place(at: .root), from: &decoder, into: &encoder)
    require(isWhole, "a patch says that the whole is replaced")
  }
  require(patch == [0x81] + result, "a whole in a patch becomes what it becomes by itself")
}

private func translated(
  _ bytes: [UInt8], _ body: (inout CBORDecoder, inout CBOREncoder) throws(CBORError) -> Void
) -> [UInt8]? {
  do throws(CBORError) { return try translate(bytes, body) } catch { return nil }
}

private func translate(
  _ bytes: [UInt8], _ body: (inout CBORDecoder, inout CBOREncoder) throws(CBORError) -> Void
) throws(CBORError) -> [UInt8] {
  try CBORDecoder.read(bytes) { decoder throws(CBORError) in
    var encoder = CBOREncoder()
    try body(&decoder, &encoder)
    return encoder.bytes
  }
}

// MARK: Builds

/// Builds of one feature, as a client and a daemon may have them. They differ in numbers, in
/// missing fields and cases, in defaults and fallbacks, and in which fields are optional.
private let builds: [Schema] = {
  let todos = Schema.Kind.array(.type("Todo"))
  let byNumber = Schema.Kind.map(key: .integer, value: .type("Todo"))
  let tree = Schema.Kind.optional(.type("Tree"))
  func schema(_ types: [String: Schema.Definition]) -> Schema {
    Schema(state: .type("State"), action: .type("Filter"), types: types)
  }
  let first = schema([
    "State": .structure([
      .init(1, "todos", todos), .init(2, "note", .optional(.text)),
      .init(3, "filter", .type("Filter")), .init(4, "byNumber", byNumber),
      .init(5, "tree", tree), .init(6, "any", .value, hasDefault: true),
      .init(7, "old", .integer, hasDefault: true),
    ]),
    "Todo": .structure([.init(1, "title", .text), .init(2, "isDone", .bool, hasDefault: true)]),
    "Filter": .enumeration([
      .init(0, "all"), .init(1, "named", [.init(0, "_0", .text)]),
      .init(2, "unknown", isFallback: true),
      .init(3, "both", [.init(0, "a", .type("Filter")), .init(1, "b", .type("Filter"))]),
    ]),
    "Tree": .structure([
      .init(1, "children", .array(.type("Tree"))), .init(2, "label", .optional(.text)),
    ]),
  ])
  let second = schema([
    "State": .structure([
      .init(1, "filter", .type("Filter")), .init(2, "byNumber", byNumber), .init(3, "todos", todos),
      .init(8, "note", .text, hasDefault: true), .init(9, "any", .optional(.value)),
      .init(30, "tree", tree), .init(31, "owner", .optional(.path)),
    ]),
    "Todo": .structure([
      .init(1, "priority", .double, hasDefault: true), .init(2, "title", .text),
      .init(300, "isDone", .optional(.bool)),
    ]),
    "Filter": .enumeration([
      .init(0, "unknown", [.init(0, "why", .optional(.text))], isFallback: true), .init(5, "all"),
      .init(
        6, "both",
        [
          .init(0, "c", .optional(.bytes)), .init(1, "b", .type("Filter")),
          .init(2, "a", .type("Filter")),
        ]),
    ]),
    "Tree": .structure([
      .init(2, "children", .array(.type("Tree"))), .init(1, "label", .optional(.text)),
    ]),
  ])
  // Has no fallback, and the state's fields in another order.
  let third = schema([
    "State": .structure([
      .init(1, "filter", .type("Filter")), .init(2, "todos", todos), .init(3, "byNumber", byNumber),
      .init(4, "tree", tree),
    ]),
    "Todo": .structure([.init(2, "title", .text)]),
    "Filter": .enumeration([
      .init(0, "named", [.init(0, "_0", .optional(.text)), .init(1, "_1", .optional(.path))]),
      .init(1, "all"),
    ]),
    "Tree": .structure([.init(1, "children", .array(.optional(.type("Tree"))))]),
  ])
  let list = Schema(
    state: .array(.type("E")), action: .type("E"),
    types: [
      "E": .enumeration([
        .init(0, "plain"), .init(1, "one", [.init(0, "", .optional(.integer))]),
        .init(2, "two", [.init(0, "_0", .path), .init(1, "_1", .optional(.unsigned))]),
        .init(3, "named", [.init(0, "a", .optional(.bytes)), .init(1, "e", .type("E"))]),
        .init(4, "list", [.init(0, "_0", .array(.optional(.bool)))]),
        .init(5, "counts", [.init(0, "_0", .map(key: .text, value: .double))]),
      ])
    ])
  return [first, second, third, list, Schema(state: .value, action: .value)]
}()

/// Writes a value of any kind, chosen by the bytes of the input.
private struct Author {
  let schema: Schema
  var choices: Input
  var encoder = CBOREncoder()
  private var depth = 0

  init(schema: Schema, choices: Input) {
    self.schema = schema
    self.choices = choices
  }

  mutating func write(_ kind: Schema.Kind) {
    depth += 1
    defer { depth -= 1 }
    switch kind {
    case .bool: encoder.encode(choices.byte() & 1 == 1)
    case .integer: encoder.encode(Int64(choices.byte()) * 0x0101_0101 - 0x7fff_ffff)
    case .unsigned: encoder.encode(UInt64(choices.byte()) << 56)
    case .double: encoder.encode(Double(choices.byte()) / 3)
    case .text: encoder.encode(hex(choices.chunk()))
    case .bytes: encoder.encode(bytes: choices.chunk())
    case .value: (isAbsent() ? Value.null : ["a": [true]]).encode(into: &encoder)
    case .path: Path((0..<count()).map { .text("\($0)/~") }).encode(into: &encoder)
    case .optional(let wrapped): if isAbsent() { encoder.encodeUndefined() } else { write(wrapped) }
    case .array(let element):
      let count = count()
      encoder.array(count)
      for _ in 0..<count { write(element) }
    case .map(let key, let element):
      let count = count()
      encoder.map(count)
      for number in 0..<count {
        if key == .text { encoder.encode("\(number)") } else { encoder.encode(number - 2) }
        write(element)
      }
    case .type(let name): write(type: name)
    }
  }

  private mutating func write(type name: String) {
    switch schema.types[name] {
    case .structure(let fields):
      // An absent field is left out.
      let present = fields.filter { !(($0.hasDefault || $0.kind.isOptional) && isAbsent()) }
      encoder.map(present.count)
      for field in present {
        encoder.encode(field.id)
        write(field.kind.unwrapped)
      }
    case .enumeration(let cases):
      let item = depth > 12 ? cases[0] : cases[Int(choices.byte()) % cases.count]
      if item.fields.isEmpty { return encoder.encode(item.id) }
      encoder.array(1 + item.fields.count)
      encoder.encode(item.id)
      for field in item.fields { write(field.kind) }
    case nil: fatalError("The schema has no type \(name).")
    }
  }

  /// The number of parts: few, and none at a great depth.
  private mutating func count() -> Int { depth > 12 ? 0 : Int(choices.byte() & 3) }

  private mutating func isAbsent() -> Bool { depth > 12 || choices.byte() & 1 == 0 }
}

/// Reads a value of a kind. Throws when the next item is none.
private func readValue(
  _ kind: Schema.Kind, of schema: Schema, _ decoder: inout CBORDecoder
) throws(CBORError) {
  switch kind {
  case .bool: _ = try decoder.bool()
  case .integer: _ = try decoder.integer()
  case .unsigned: _ = try decoder.unsigned()
  case .double: _ = try decoder.double()
  case .text: _ = try decoder.text()
  case .bytes: _ = try decoder.byteString()
  case .value: _ = try Value(from: &decoder, seed: testSeed)
  case .path: _ = try Path(from: &decoder)
  case .optional(let wrapped):
    if !decoder.undefinedIfNext() { try readValue(wrapped, of: schema, &decoder) }
  case .array(let element):
    let count = try decoder.array()
    for _ in 0..<count { try readValue(element, of: schema, &decoder) }
    decoder.close()
  case .map(let key, let element):
    let count = try decoder.map()
    for _ in 0..<count {
      try readValue(key, of: schema, &decoder)
      try readValue(element, of: schema, &decoder)
    }
    decoder.close()
  case .type(let name):
    switch schema.types[name] {
    case .structure(let fields): try readStructure(fields, of: schema, &decoder)
    case .enumeration(let cases): try readCase(cases, of: schema, &decoder)
    case nil: fatalError("The schema has no type \(name).")
    }
  }
}

private func readStructure(
  _ fields: [Schema.Field], of schema: Schema, _ decoder: inout CBORDecoder
) throws(CBORError) {
  let count = try decoder.map()
  for _ in 0..<count {
    let start = decoder.offset
    let id = try decoder.unsigned()
    guard let field = fields.first(where: { UInt64(exactly: $0.id) == id }) else {
      throw CBORError(.notAllowed("field \(id)"), at: start)
    }
    try readValue(field.kind, of: schema, &decoder)
  }
  decoder.close()
}

/// Reads a case: its number, or an array of its number and values. Optional values at the end may
/// be left out.
private func readCase(
  _ cases: [Schema.Case], of schema: Schema, _ decoder: inout CBORDecoder
) throws(CBORError) {
  let start = decoder.offset
  let isAlone = try decoder.peekMajor() == .unsigned
  let items = isAlone ? 1 : try decoder.array()
  guard items > 0 else { throw CBORError(.notAllowed("a case without a number"), at: start) }
  let number = try decoder.unsigned()
  guard let item = cases.first(where: { UInt64(exactly: $0.id) == number }) else {
    throw CBORError(.unknownCase(number), at: start)
  }
  guard items <= 1 + item.fields.count,
    item.fields.dropFirst(items - 1).allSatisfy({ $0.kind.isOptional })
  else {
    throw CBORError(.notAllowed("\(item.name) with \(items - 1) values"), at: start)
  }
  for field in item.fields.prefix(items - 1) { try readValue(field.kind, of: schema, &decoder) }
  if !isAlone { decoder.close() }
}

extension Schema.Kind {
  fileprivate var isOptional: Bool { unwrapped != self }

  fileprivate var unwrapped: Schema.Kind {
    if case .optional(let wrapped) = self { wrapped } else { self }
  }
}
