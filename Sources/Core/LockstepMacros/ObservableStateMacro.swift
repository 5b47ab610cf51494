import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@ObservableState`: a struct whose fields travel one by one, or an enumeration that travels
/// whole.
enum ObservableStateMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    if let declaration = declaration.as(StructDeclSyntax.self) {
      return try expand(node, declaration, type, protocols, in: context)
    }
    if let declaration = declaration.as(EnumDeclSyntax.self) {
      // The member expansion reports the complaints.
      guard CaseReader(declaration).complaints.isEmpty,
        HiddenType.complaints(of: declaration, node, in: context).isEmpty
      else { return [] }
      let wanted = protocols.filter { !$0.isObservableState }
      return [try ExtensionDeclSyntax(of: type, conformingTo: wanted)]
    }
    var complaints = Complaints()
    complaints.refuse(node, on: declaration)
    complaints.report(to: context)
    return []
  }

  private static func expand(
    _ node: AttributeSyntax, _ declaration: StructDeclSyntax, _ type: some TypeSyntaxProtocol,
    _ protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    var reader = FieldReader(declaration)
    if node.isFrozen {
      reader.complaints.add(
        "frozenStruct", at: node, "Only an enumeration is frozen: a field may always be added.")
    }
    guard reader.complaints.isEmpty else {
      reader.complaints.report(to: context)
      return []
    }
    let hidden = HiddenType.complaints(of: declaration, node, in: context)
    guard hidden.isEmpty else {
      hidden.report(to: context)
      return []
    }
    let target = Target(
      declaration, generics: declaration.genericParameterClause, in: context)
    // The member expansion reports the complaints.
    guard SettingWriter(target, reader.fields).complaints.isEmpty else { return [] }
    let writer = StructureWriter(target: target, all: reader.fields)
    let wanted = protocols.filter(\.isObservableState)
    let generics = context.genericParameterNames
      .union(declaration.genericParameterClause?.parameters.map(\.name.text) ?? [])
    let check = StructureWriter.travelCheck(declaration, generics)
    return [
      try ExtensionDeclSyntax(of: type, conformingTo: wanted, members: writer.members + check)
    ]
  }
}

extension ObservableStateMacro: MemberMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    if let declaration = declaration.as(StructDeclSyntax.self) {
      return setting(of: declaration, in: context)
    }
    guard let declaration = declaration.as(EnumDeclSyntax.self) else { return [] }
    if CaseReader(declaration).isOpen(node) {
      context.diagnose(FallbackWarning.of(declaration, node))
    }
    return EnumerationWriter.members(of: declaration, node, isAction: false, in: context)
  }

  /// The enumeration `Setting` of a struct with fields under `@Settable`.
  private static func setting(
    of declaration: StructDeclSyntax, in context: some MacroExpansionContext
  ) -> [DeclSyntax] {
    let reader = FieldReader(declaration)
    // The extension expansion reports the complaints.
    guard reader.complaints.isEmpty else { return [] }
    let target = Target(declaration, generics: declaration.genericParameterClause, in: context)
    let writer = SettingWriter(target, reader.fields)
    guard writer.complaints.isEmpty else {
      writer.complaints.report(to: context)
      return []
    }
    return writer.declaration.map { DeclSyntax(stringLiteral: $0) }
  }
}

extension ObservableStateMacro: MemberAttributeMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingAttributesFor member: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [AttributeSyntax] {
    TravelCheckMacro.attributes(for: member, of: declaration, in: context)
  }
}

extension TypeSyntax {
  fileprivate var isObservableState: Bool { trimmedDescription.hasSuffix("ObservableState") }
}

extension Complaints {
  /// Complain that a type is neither struct nor enumeration.
  mutating func refuse(_ node: AttributeSyntax, on declaration: some DeclGroupSyntax) {
    guard let declaration = declaration.as(ClassDeclSyntax.self) else {
      let keyword = declaration.introducer.text
      add(
        "notAValue", at: node,
        "'@\(node.attributeName.trimmedDescription)' is for structs and enumerations, not for \(keyword)s."
      )
      return
    }
    add(
      "notAValue", at: declaration.classKeyword,
      "A state is a value; a class could be changed from anywhere.",
      fixIts: [
        .replace(
          "Make it a struct", "makeStruct", declaration.classKeyword,
          with: declaration.classKeyword.with(\.tokenKind, .keyword(.struct)))
      ])
  }
}
