import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Action`: an enumeration of the actions of a feature.
enum ActionMacro: ExtensionMacro, MemberMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard let declaration = declaration.as(EnumDeclSyntax.self) else {
      var complaints = Complaints()
      complaints.add(
        "notAnEnumeration", at: node, "'@Action' is for enumerations: a case for what may happen.")
      complaints.report(to: context)
      return []
    }
    // The member expansion reports the complaints.
    let reader = CaseReader(declaration)
    guard reader.complaints.isEmpty,
      HiddenType.complaints(of: declaration, node, in: context).isEmpty
    else { return [] }
    let setsFields = reader.cases.contains(where: \.setsFields)
    let wanted = protocols.filter { setsFields || !$0.isBindableAction }
    return [try ExtensionDeclSyntax(of: type, conformingTo: wanted)]
  }

  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard let declaration = declaration.as(EnumDeclSyntax.self) else { return [] }
    return EnumerationWriter.members(of: declaration, node, isAction: true, in: context)
  }
}

extension EnumerationWriter {
  /// The members of an enumeration. If it cannot travel, there are none, and complaints are
  /// reported.
  static func members(
    of declaration: EnumDeclSyntax, _ node: AttributeSyntax, isAction: Bool,
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] {
    let reader = CaseReader(declaration)
    let hidden = HiddenType.complaints(of: declaration, node, in: context)
    guard reader.complaints.isEmpty, hidden.isEmpty else {
      reader.complaints.report(to: context)
      hidden.report(to: context)
      return []
    }
    let writer = EnumerationWriter(
      target: Target(declaration, generics: declaration.genericParameterClause, in: context),
      cases: reader.cases, isIndirect: reader.isIndirect,
      isAction: isAction && !declaration.memberBlock.declares("name"))
    let generics = context.genericParameterNames
      .union(declaration.genericParameterClause?.parameters.map(\.name.text) ?? [])
    let members = writer.members + (isAction ? writer.setting : []) + writer.travelCheck(generics)
    return members.map { DeclSyntax(stringLiteral: $0) }
  }
}

extension TypeSyntax {
  fileprivate var isBindableAction: Bool { trimmedDescription.hasSuffix("BindableAction") }
}

extension MemberBlockSyntax {
  /// Whether the block declares a variable of this name.
  fileprivate func declares(_ name: String) -> Bool {
    members.contains {
      $0.decl.as(VariableDeclSyntax.self)?.bindings.contains {
        $0.pattern.trimmedDescription == name
      } == true
    }
  }
}

extension DeclGroupSyntax {
  /// The keyword of the declaration: `actor`, `protocol`, …
  var introducer: TokenSyntax {
    self.as(ActorDeclSyntax.self)?.actorKeyword ?? self.as(ProtocolDeclSyntax.self)?.protocolKeyword
      ?? self.as(ExtensionDeclSyntax.self)?.extensionKeyword
      ?? self.as(ClassDeclSyntax.self)?.classKeyword ?? .keyword(.struct)
  }
}
