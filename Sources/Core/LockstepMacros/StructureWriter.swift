import SwiftSyntax

/// Writes the members of a struct's extension: one statement a field.
struct StructureWriter {
  let target: Target
  /// All stored properties, travelling or not.
  let all: [Field]

  private var fields: [Field] { all.filter { !$0.isIgnored } }
  private var constants: [Field] { fields.filter(\.isConstant) }
  private var access: String { target.access }
  private let coding = "Values.StructureCoding"

  init(target: Target, all: [Field]) {
    self.target = target
    self.all = all
  }

  var members: [String] {
    var members = [
      isSame, prefetch, encode, decode, difference, apply, digest, adopt, holdsCollections,
      schemaKind, visit,
      fieldList, initialValue, resetEphemeral,
    ]
    members.append(resetting)
    if !constants.isEmpty { members += [patching, adopting] }
    if hasDefaults { members.append("private init(_defaults: Void) {}") }
    return members
  }

  /// A member: its declaration, its statements.
  private func member(_ declaration: String, _ statements: [String]) -> String {
    "\(access)\(declaration) {\n\(lines(statements))\n}"
  }

  /// One text for every field.
  private func each(_ text: (Int, Field) -> [String]) -> [String] {
    fields.enumerated().flatMap { text($0.offset, $0.element) }
  }

  // MARK: Sameness and form

  private var isSame: String {
    member(
      "func isSame(as other: Self) -> Bool",
      each { _, field in
        let (own, others) = ("self.\(field.storage)", "other.\(field.storage)")
        let isSame =
          field.isChecked ? "\(coding).isSame(\(own), \(others))" : "\(own).isSame(as: \(others))"
        return ["if !\(isSame) { return false }"]
      } + ["return true"])
  }

  private var prefetch: String {
    member(
      "func prefetchStorage()",
      each { _, field in ["\(coding).prefetchStorage(of: self.\(field.storage))"] })
  }

  private var encode: String {
    let declaration = "func encode(into encoder: inout CBOR.CBOREncoder)"
    if fields.isEmpty { return member(declaration, ["encoder.map(0)"]) }
    return member(
      declaration,
      ["var count = 0"]
        + each { _, field in ["count += \(coding).presence(of: self.\(field.storage))"] }
        + ["encoder.map(count)"]
        + each { number, field in
          ["\(coding).encode(\(number), self.\(field.storage), into: &encoder)"]
        })
  }

  private var decode: String {
    let required = fields.filter { $0.initial == nil }
    let declarations = required.map { field in
      "var \(field.local) = \(coding).nothing({ (state: Self) in state.\(field.storage) })"
    }
    let cases = each { number, field in
      let place = field.initial == nil ? "required: &\(field.local)" : "&self.\(field.storage)"
      return ["  case \(number): try \(coding).decode(\(place), from: &decoder, seed: seed)"]
    }
    let assignments = required.map { field in
      "self.\(field.storage) = try \(coding).required("
        + "\(field.local), \"\(target.name)\", \"\(field.name)\", at: fields.start)"
    }
    return member(
      "init(from decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) throws(CBOR.CBORError)",
      declarations
        + [
          "var fields = try Values.FieldDecoder(&decoder)",
          "while let number = try fields.next(&decoder) {",
          "  switch number {",
        ] + cases + ["  default: try decoder.skip()", "  }", "}"] + assignments)
  }

  // MARK: Changes

  private var difference: String {
    member(
      "func encodeDifference(from old: Self, into encoder: inout CBOR.CBOREncoder) -> Bool",
      ["var patch = Values.PatchMap(in: &encoder)"]
        + each { number, field in
          [
            "\(coding).difference(\(number), self.\(field.storage), old.\(field.storage), "
              + "&patch, &encoder)"
          ]
        } + ["return patch.finish(&encoder)"])
  }

  private var apply: String {
    let kept = all.filter { $0.isIgnored && !$0.isConstant }
    return member(
      "mutating func apply(patch decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) "
        + "throws(CBOR.CBORError)",
      [
        "if \(kept.isEmpty ? "let" : "var") value = "
          + "try Self.replacement(from: &decoder, seed: seed) {"
      ]
        + kept.map { "  value.\($0.storage) = self.\($0.storage)" }
        + [
          "  self = value", "  return", "}", "let count = try \(coding).openPatch(&decoder)",
          "for _ in 0..<count {", "  switch try decoder.unsigned() {",
        ]
        + each { number, field in
          let change =
            field.isConstant
            ? "self = try Self(_patching: self, \(number), &decoder, seed: seed)"
            : "try \(coding).apply(&self.\(field.storage), patch: &decoder, seed: seed)"
          return ["  case \(number): \(change)"]
        } + ["  default: try decoder.skip()", "  }", "}", "decoder.close()"])
  }

  /// A copy in which one constant is changed by a patch.
  private var patching: String {
    let others = all.filter { !$0.isConstant }.map {
      "self.\($0.storage) = other.\($0.storage)"
    }
    let statements = each { number, field in
      guard field.isConstant else { return [] }
      return [
        "var \(field.local) = other.\(field.identifier)",
        "if number == \(number) {",
        "  try \(coding).apply(&\(field.local), patch: &decoder, seed: seed)", "}",
        "self.\(field.identifier) = \(field.local)",
      ]
    }
    return """
      private init(
        _patching other: Self, _ number: Int, _ decoder: inout CBOR.CBORDecoder,
        seed: Values.HashSeed
      ) throws(CBOR.CBORError) {
      \(lines(statements + others))
      }
      """
  }

  // MARK: Digest and seed

  private var digest: String {
    let declaration = "func digest(seed: Values.HashSeed) -> UInt64"
    if fields.isEmpty { return member(declaration, ["Values.FieldDigest(seed: seed).finish()"]) }
    return member(
      declaration,
      ["var digest = Values.FieldDigest(seed: seed)"]
        + each { number, field in ["digest.add(\(number), self.\(field.storage))"] }
        + ["return digest.finish()"])
  }

  private var adopt: String {
    let changes = fields.filter { !$0.isConstant }.map {
      "\(coding).adopt(&self.\($0.storage), seed: seed)"
    }
    let rebuilding =
      constants.isEmpty
      ? []
      : ["if \(constants.map(mayHoldCollections).joined(separator: " || ")) {"]
        + ["  self = Self(_adopting: self, seed: seed)", "}"]
    return member("mutating func adopt(seed: Values.HashSeed)", changes + rebuilding)
  }

  /// A copy whose constants have adopted the seed.
  private var adopting: String {
    let statements = all.flatMap { field in
      guard field.isConstant else { return ["self.\(field.storage) = other.\(field.storage)"] }
      return [
        "var \(field.local) = other.\(field.identifier)",
        "\(coding).adopt(&\(field.local), seed: seed)",
        "self.\(field.identifier) = \(field.local)",
      ]
    }
    return "private init(_adopting other: Self, seed: Values.HashSeed) {\n"
      + "\(lines(statements))\n}"
  }

  private var holdsCollections: String {
    member(
      "static var holdsCollections: Bool",
      each { _, field in ["if \(mayHoldCollections(field)) { return true }"] } + ["return false"])
  }

  private func mayHoldCollections(_ field: Field) -> String {
    "\(coding).holdsCollections({ (state: Self) in state.\(field.storage) })"
  }

  // MARK: Schema and fields

  private var schemaKind: String {
    let entries =
      fields.isEmpty
      ? ["  .structure([])"]
      : ["  var fields: [Values.Schema.Field] = []"]
        + each { number, field in
          [
            "  fields.append(schema.field("
              + "\(number), \"\(field.name)\", \\Self.\(field.projection)"
              + (field.initial == nil ? "))" : ", hasDefault: true))")
          ]
        } + ["  return .structure(fields)"]
    return member(
      "static func schemaKind(in schema: inout Values.SchemaBuilder) -> Values.Schema.Kind",
      ["schema.kind(of: Self.self, named: \"\(target.name)\") { schema in"] + entries + ["}"])
  }

  private var visit: String {
    member(
      "static func visit<V: Values.PartVisitor>(\n"
        + "  _ new: Self?, _ old: Self?, at path: Values.Path, from depth: Int, "
        + "_ visitor: inout V\n)",
      [
        "guard depth < path.keys.count else { return visitor.visit(new, old) }",
        "switch \(coding).field(path, depth) {",
      ]
        + each { number, field in
          [
            "case \(number):",
            "  \(coding).visit(",
            "    new?.\(field.storage), old?.\(field.storage), at: path, from: depth + 1, "
              + "&visitor)",
          ]
        } + ["default: visitor.visitAbsent()", "}"])
  }

  private var fieldList: String {
    let type = "[Lockstep.StateField<Self>]"
    let body =
      fields.isEmpty
      ? ["[]"]
      : ["var fields: \(type) = []"]
        + each { number, field in
          [
            "fields.append(Lockstep.StateField(\(number), \"\(field.name)\", \\Self.\(field.projection)"
              + "\(field.isEphemeral ? ", isEphemeral: true" : "")))"
          ]
        } + ["return fields"]
    guard target.mayStore else { return member("static var fields: \(type)", body) }
    return "\(access)static let fields: \(type) = {\n\(lines(body))\n}()"
  }

  private var hasDefaults: Bool { all.allSatisfy { $0.initial != nil } }

  private var initialValue: String {
    member(
      "static var initialValue: Self?", [hasDefaults ? "Self(_defaults: ())" : "nil"])
  }

  private var resetEphemeral: String {
    member("mutating func resetEphemeral()", ["self = Self(_resetting: self)"])
  }

  /// A copy whose ephemeral fields have their initial values, because they are not assigned.
  private var resetting: String {
    let statements = all.filter { !$0.isEphemeral }.flatMap { field in
      if field.isIgnored { return ["self.\(field.storage) = other.\(field.storage)"] }
      return [
        "var \(field.local) = other.\(field.storage)",
        "Lockstep.EphemeralFields.reset(&\(field.local))",
        "self.\(field.storage) = \(field.local)",
      ]
    }
    return "private init(_resetting other: Self) {\n\(lines(statements))\n}"
  }
}
