import SwiftDiagnostics
import SwiftSyntax

/// A case of an enumeration.
struct Case {
  /// The identifier as written in code, with backticks if it needs them.
  let identifier: String
  let payload: [Payload]
  let isFallback: Bool

  /// The name that peers know.
  var name: String { identifier.filter { $0 != "`" } }

  /// A value that a case carries.
  struct Payload {
    let label: String?
    let type: TypeSyntax
    let initial: String?

    /// Whether the type is named an action, as the types of child actions in a collection are.
    var isNamedAction: Bool { type.trimmedDescription.hasSuffix("Action") }

    /// Whether the type may be an action, whatever its name: an alias does not reveal it.
    var mayBeAction: Bool {
      let name = type.trimmedDescription
      let wrapped = name.hasSuffix("?") ? String(name.dropLast()) : name
      return !wrapped.hasPrefix("[") && !Self.plainTypes.contains(wrapped)
    }

    private static let plainTypes: Set = [
      "Bool", "Double", "Float", "Int", "Int8", "Int16", "Int32", "Int64", "String", "UInt",
      "UInt8", "UInt16", "UInt32", "UInt64",
    ]
  }

  /// The case as a pattern or value with these contents: `.set(name: _0, _1)`.
  func with(_ contents: [String], labels: Bool) -> String {
    if payload.isEmpty { return ".\(identifier)" }
    let arguments = zip(payload, contents).map { payload, content in
      if labels, let label = payload.label { "\(label): \(content)" } else { content }
    }
    return ".\(identifier)(\(arguments.joined(separator: ", ")))"
  }

  /// The names of the contents in a pattern.
  func locals(_ prefix: String = "_") -> [String] { payload.indices.map { "\(prefix)\($0)" } }

  /// The case as a pattern that binds its contents.
  func binding(_ keyword: String, _ prefix: String = "_") -> String {
    with(locals(prefix).map { "\(keyword) \($0)" }, labels: false)
  }
}

/// Reads the cases of an enumeration.
struct CaseReader {
  var cases: [Case] = []
  /// Whether a value may contain another value of its own type.
  var isIndirect: Bool
  var complaints = Complaints()

  init(_ declaration: EnumDeclSyntax) {
    isIndirect = declaration.modifiers.contains { $0.name.text == "indirect" }
    for member in declaration.memberBlock.members {
      if let conditional = member.decl.as(IfConfigDeclSyntax.self) {
        refuse(conditional)
      } else if let declaration = member.decl.as(EnumCaseDeclSyntax.self) {
        read(declaration)
      }
    }
    if cases.isEmpty && complaints.isEmpty {
      complaints.add(
        "noCases", at: declaration.name,
        "An enumeration without cases has no value that could travel.")
    }
  }

  /// Peers built in different ways would disagree about the numbers.
  private mutating func refuse(_ conditional: IfConfigDeclSyntax) {
    for clause in conditional.clauses {
      guard case .decls(let members) = clause.elements,
        members.contains(where: { $0.decl.is(EnumCaseDeclSyntax.self) })
      else { continue }
      complaints.add(
        "conditional", at: clause.poundKeyword,
        "A case cannot stand inside '#if': every peer has to have the same cases.")
      return
    }
  }

  private mutating func read(_ declaration: EnumCaseDeclSyntax) {
    if declaration.modifiers.contains(where: { $0.name.text == "indirect" }) { isIndirect = true }
    let fallback = declaration.attributes.named("Fallback")
    for element in declaration.elements {
      let parameters = element.parameterClause?.parameters.map { $0 } ?? []
      if let fallback { check(fallback, declaration, element) }
      for parameter in parameters { complaints.check(parameter.type) }
      cases.append(
        Case(
          identifier: element.name.text, payload: parameters.map(Case.Payload.init),
          isFallback: fallback != nil))
    }
  }

  private mutating func check(
    _ fallback: AttributeSyntax, _ declaration: EnumCaseDeclSyntax, _ element: EnumCaseElementSyntax
  ) {
    let remove = FixIt.remove(fallback, from: declaration)
    if let clause = element.parameterClause {
      complaints.add(
        "fallbackPayload", at: clause,
        "A fallback stands for cases that nobody here knows, so it cannot carry anything.",
        fixIts: [remove])
    } else if let first = cases.first(where: \.isFallback) {
      complaints.add(
        "secondFallback", at: element, "'\(first.name)' is the fallback already.",
        fixIts: [remove])
    }
  }
}

extension Case.Payload {
  fileprivate init(_ parameter: EnumCaseParameterSyntax) {
    let name = parameter.firstName?.text
    label = name == "_" ? nil : name?.filter { $0 != "`" }
    type = parameter.type.trimmed
    initial = parameter.defaultValue?.value.trimmedDescription
  }
}
