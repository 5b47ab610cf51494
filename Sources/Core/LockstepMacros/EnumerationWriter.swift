import SwiftSyntax

/// Writes the members of an enumeration. They are inside it and not in an extension, because an
/// extension does not see the names of the enclosing type, such as the types that the cases carry.
struct EnumerationWriter {
  let target: Target
  let cases: [Case]
  /// Whether a value may contain another value of its own type.
  let isIndirect: Bool
  /// Whether to write `name`, the name of the action for people.
  let isAction: Bool

  private var coding: String { "Values.StructureCoding" }
  private var access: String { target.access }
  private var carrying: [Case] { cases.filter { !$0.payload.isEmpty } }

  var members: [String] {
    var members = [isSame, encode, decode]
    if !carrying.isEmpty { members += [adopt, holdsCollections] }
    members += [schemaKind, paths, "\(access)static var allCasePaths: AllCasePaths { .init() }"]
    if isAction { members.append(name) }
    return members
  }

  /// A member: its declaration, its statements.
  private func member(_ declaration: String, _ statements: [String]) -> String {
    "\(access)\(declaration) {\n\(lines(statements))\n}"
  }

  private func each(_ text: (Int, Case) -> [String]) -> [String] {
    cases.enumerated().flatMap { text($0.offset, $0.element) }
  }

  // MARK: Sameness and form

  private var isSame: String {
    let entries = each { _, item in
      ["case (\(item.binding("let", "a")), \(item.binding("let", "b"))):"]
        + item.payload.enumerated().map { index, value in
          // Only values with a check of their own may be of any type.
          let isSame =
            value.type.isKnownToTravel
            ? "a\(index).isSame(as: b\(index))" : "\(coding).isSame(a\(index), b\(index))"
          return "  if !\(isSame) { return false }"
        }
        + ["  return true"]
    }
    return member(
      "func isSame(as other: Self) -> Bool",
      ["switch (self, other) {"] + entries + (cases.count > 1 ? ["default: return false"] : [])
        + ["}"])
  }

  private var encode: String {
    member(
      "func encode(into encoder: inout CBOR.CBOREncoder)",
      ["switch self {"]
        + each { number, item in
          if item.payload.isEmpty {
            return ["case .\(item.identifier): encoder.encode(\(number))"]
          }
          return [
            "case \(item.binding("let")):", "  encoder.array(\(item.payload.count + 1))",
            "  encoder.encode(\(number))",
          ] + item.locals().map { "  \(coding).encode(\($0), into: &encoder)" }
        } + ["}"])
  }

  private var decode: String {
    let fallback = cases.first(where: \.isFallback).map { "self = .\($0.identifier)" }
    return member(
      "init(from decoder: inout CBOR.CBORDecoder, seed: Values.HashSeed) throws(CBOR.CBORError)",
      ["var item = try Values.CaseDecoder(&decoder)", "switch item.number {"]
        + each { number, item in
          if item.payload.isEmpty { return ["case \(number): self = .\(item.identifier)"] }
          return ["case \(number):"] + item.payload.indices.map { "  \(read(item, $0))" }
            + ["  self = \(item.with(item.locals(), labels: true))"]
        } + ["default: \(fallback ?? "throw item.unknown")", "}", "try item.finish(&decoder)"])
  }

  private func read(_ item: Case, _ index: Int) -> String {
    let payload = item.payload[index]
    let what =
      payload.initial.map { "default: \($0)" }
      ?? "\"\(target.name).\(item.name)\", \"\(fieldName(item, index))\""
    return "let _\(index): \(payload.type) = "
      + "try item.field(\(what), from: &decoder, seed: seed)"
  }

  private func fieldName(_ item: Case, _ index: Int) -> String {
    item.payload[index].label ?? "_\(index)"
  }

  // MARK: Seed

  private var adopt: String {
    let entries = carrying.flatMap { item in
      ["case \(item.binding("var")):"]
        + item.locals().map { "  \(coding).adopt(&\($0), seed: seed)" }
        + ["  self = \(item.with(item.locals(), labels: true))"]
    }
    return member(
      "mutating func adopt(seed: Values.HashSeed)",
      ["guard Self.holdsCollections else { return }", "switch self {"] + entries
        + (carrying.count < cases.count ? ["default: break"] : []) + ["}"])
  }

  /// Types that contain themselves are assumed to hold collections: asking would not terminate.
  private var holdsCollections: String {
    let types = carrying.flatMap(\.payload).map(\.type.description)
    return member(
      "static var holdsCollections: Bool",
      isIndirect
        ? ["true"]
        : types.map { "if \(coding).holdsCollections((\($0)).self) { return true }" } + [
          "return false"
        ])
  }

  // MARK: Schema, paths and names

  private var schemaKind: String {
    let entries = each { number, item in
      if item.payload.isEmpty {
        let mark = item.isFallback ? ", isFallback: true" : ""
        return ["  cases.append(.init(\(number), \"\(item.name)\"\(mark)))"]
      }
      return ["  fields = []"]
        + item.payload.indices.map { index in
          "  fields.append(.init(\(index + 1), \"\(fieldName(item, index))\", "
            + "schema.kind(of: (\(item.payload[index].type)).self)"
            + (item.payload[index].initial == nil ? "))" : ", hasDefault: true))")
        } + ["  cases.append(.init(\(number), \"\(item.name)\", fields))"]
    }
    return member(
      "static func schemaKind(in schema: inout Values.SchemaBuilder) -> Values.Schema.Kind",
      [
        "schema.kind(of: Self.self, named: \"\(target.name)\") { schema in",
        "  var cases: [Values.Schema.Case] = []",
      ] + (carrying.isEmpty ? [] : ["  var fields: [Values.Schema.Field]"]) + entries
        + ["  return .enumeration(cases)", "}"])
  }

  private var paths: String {
    let entries = cases.flatMap { item in
      [
        "\(access)var \(item.identifier): "
          + "Lockstep.CasePath<\(target.simpleName), \(value(of: item))> {",
        "  .init(", "    embed: { \(embedding(item)) },", "    extract: {",
        "      guard case \(item.binding("let")) = $0 else { return nil }",
        "      return (\(item.locals().joined(separator: ", ")))", "    })", "}",
      ]
    }
    return "\(access)struct AllCasePaths: Sendable {\n\(lines(entries))\n}"
  }

  /// The values that a case carries, as one type.
  private func value(of item: Case) -> String {
    if item.payload.isEmpty { return "Void" }
    if item.payload.count == 1 { return item.payload[0].type.description }
    let elements = item.payload.map { payload in
      payload.label.map { "\($0): \(payload.type)" } ?? payload.type.description
    }
    return "(\(elements.joined(separator: ", ")))"
  }

  private func embedding(_ item: Case) -> String {
    switch item.payload.count {
    case 0: "_ in .\(item.identifier)"
    case 1: item.with(["$0"], labels: true)
    case let count: item.with((0..<count).map { index in "$0.\(index)" }, labels: true)
    }
  }

  private var name: String {
    member(
      "var name: String",
      ["switch self {"]
        + each { _, item in
          guard let last = item.payload.last, item.payload.count == 1 || last.mayBeAction else {
            return ["case .\(item.identifier): return \"\(item.name)\""]
          }
          // Of several values, the last is tested for being an action at run time only if its type
          // is named an action.
          let label = item.payload.count == 1 || last.isNamedAction ? "carrying" : "ending"
          let ignored = item.payload.dropLast().map { _ in "_" }
          return [
            "case \(item.with(ignored + ["let action"], labels: false)):",
            "  return Lockstep.ActionName.of(\"\(item.name)\", \(label): action)",
          ]
        } + ["}"])
  }
}
