import SwiftSyntax
import SwiftSyntaxMacros

/// `@Ignored`, `@Ephemeral`, `@Settable` and `@Fallback`: they mark a member for the macro of its
/// type, and expand to nothing.
enum MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] { [] }
}
