import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The type that a macro is attached to, with the names and the access that its members need.
struct Target {
  /// The name of the type in the code inside it.
  let simpleName: String
  /// The name for people, in a string literal: `Todos.State`, `Page<\(Item.self)>`.
  let name: String
  /// The access modifier that makes the members as visible as the type: empty, or `public ` and
  /// such. For a type inside a private one it is `fileprivate `, because an extension is outside of
  /// that one.
  let access: String
  /// Whether the type may have static stored properties.
  let mayStore: Bool

  init(simpleName: String, name: String, access: String, mayStore: Bool) {
    self.simpleName = simpleName
    self.name = name
    self.access = access
    self.mayStore = mayStore
  }

  init(
    _ declaration: some DeclGroupSyntax & NamedDeclSyntax,
    generics: GenericParameterClauseSyntax?, in context: some MacroExpansionContext
  ) {
    simpleName = declaration.name.text
    let outer = context.lexicalContext.reversed().compactMap(Self.name)
    var name = (outer + [declaration.name.text]).joined(separator: ".")
    if let parameters = generics?.parameters {
      let arguments = parameters.map { "\\(\($0.name.text).self)" }
      name += "<\(arguments.joined(separator: ", "))>"
    }
    self.name = name
    let levels = declaration.modifiers.map(\.name.text)
    let around = context.lexicalContext.flatMap(Self.modifiers)
    let isHidden = (levels + around).contains { $0 == "private" || $0 == "fileprivate" }
    access =
      isHidden
      ? "fileprivate "
      : ["public", "package"].first(where: levels.contains).map { "\($0) " } ?? ""
    // An extension does not show whether what it extends is generic.
    mayStore =
      generics == nil
      && !context.lexicalContext.contains {
        $0.is(ExtensionDeclSyntax.self)
          || $0.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
      }
  }

  private static func name(_ node: Syntax) -> String? {
    if let node = node.as(ExtensionDeclSyntax.self) {
      return node.extendedType.trimmedDescription
    }
    guard node.asProtocol((any DeclGroupSyntax).self) != nil else { return nil }
    return node.asProtocol((any NamedDeclSyntax).self)?.name.text
  }

  private static func modifiers(_ node: Syntax) -> [String] {
    node.asProtocol((any WithModifiersSyntax).self)?.modifiers.map(\.name.text) ?? []
  }
}

extension ExtensionDeclSyntax {
  /// An extension of a type with these conformances and members.
  init(
    of type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax], members: [String] = []
  ) throws {
    let names = protocols.map(\.trimmedDescription).joined(separator: ", ")
    let inheritance = names.isEmpty ? "" : ": \(names)"
    let body = members.map(indented).joined(separator: "\n\n")
    try self.init("extension \(raw: type.trimmedDescription)\(raw: inheritance) {\n\(raw: body)\n}")
  }
}

/// The text with every line indented by one level.
private func indented(_ text: String) -> String {
  text.split(separator: "\n", omittingEmptySubsequences: false)
    .map { $0.isEmpty ? "" : "  \($0)" }.joined(separator: "\n")
}

/// The lines of code as one text, indented by `indent` levels.
func lines(_ lines: [String], indent: Int = 1) -> String {
  lines.map { String(repeating: "  ", count: indent) + $0 }.joined(separator: "\n")
}
