import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A type that is private to another one. The extension which a macro writes stands outside of both, and
/// cannot name it; at the level of the file, private is fileprivate.
enum HiddenType {
  /// The complaints of a declaration that is private inside another, or inside one that is.
  static func complaints(
    of declaration: some DeclGroupSyntax & NamedDeclSyntax, _ node: AttributeSyntax,
    in context: some MacroExpansionContext
  ) -> Complaints {
    var complaints = Complaints()
    let around = context.lexicalContext
    if !around.isEmpty, let own = declaration.modifiers.first(where: \.isPrivate) {
      complaints.add(
        "privateInside", at: own, sentence(declaration.name.text),
        fixIts: [
          .replace(
            "Make it fileprivate", "makeFileprivate", own.name,
            with: own.name.with(\.tokenKind, .keyword(.fileprivate)))
        ])
      return complaints
    }
    let inner = around.dropLast().first {
      $0.asProtocol((any WithModifiersSyntax).self)?.modifiers.contains(where: \.isPrivate) == true
    }
    if let name = inner?.asProtocol((any NamedDeclSyntax).self)?.name.text {
      complaints.add("privateInside", at: node, sentence(name))
    }
    return complaints
  }

  private static func sentence(_ name: String) -> String {
    "'\(name)' is private inside another type, where the code of the macro does not see it: make it "
      + "fileprivate."
  }
}

extension DeclModifierSyntax {
  fileprivate var isPrivate: Bool { name.tokenKind == .keyword(.private) && detail == nil }
}
