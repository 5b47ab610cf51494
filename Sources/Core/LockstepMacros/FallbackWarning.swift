import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// The warning that an enumeration of a state has no case for those of a newer version.
enum FallbackWarning {
  private static let message = Complaint(
    message: """
      A case that a newer version adds would disconnect older peers: mark one '@Fallback', or say \
      '@ObservableState(frozen: true)' if none will be added.
      """,
    name: "noFallback", severity: .warning)

  static func of(_ declaration: EnumDeclSyntax, _ node: AttributeSyntax) -> Diagnostic {
    Diagnostic(
      node: declaration.name, message: message,
      fixIts: [
        .replace(
          "Add '@Fallback case unknown'", "addFallback", declaration.memberBlock,
          with: withFallback(declaration.memberBlock)),
        .replace(
          "Say that no case will be added", "freeze", node,
          with: frozen(node)),
      ])
  }

  private static func withFallback(_ block: MemberBlockSyntax) -> MemberBlockSyntax {
    let trivia = block.members.last?.leadingTrivia ?? .newline
    let item = MemberBlockItemSyntax(
      leadingTrivia: trivia.contains(where: \.isNewline) ? trivia : .space,
      decl: DeclSyntax("@Fallback case unknown"))
    return block.with(\.members, block.members + [item])
  }

  private static func frozen(_ node: AttributeSyntax) -> AttributeSyntax {
    AttributeSyntax(
      attributeName: node.attributeName.trimmed, leftParen: .leftParenToken(),
      arguments: .argumentList([
        LabeledExprSyntax(
          label: "frozen", colon: .colonToken(trailingTrivia: .space),
          expression: BooleanLiteralExprSyntax(true))
      ]), rightParen: .rightParenToken()
    ).with(\.leadingTrivia, node.leadingTrivia).with(\.trailingTrivia, node.trailingTrivia)
  }
}

extension CaseReader {
  /// Whether later versions may add cases, for which there is no fallback.
  func isOpen(_ node: AttributeSyntax) -> Bool {
    complaints.isEmpty && !cases.contains(where: \.isFallback) && !node.isFrozen
  }
}

extension AttributeSyntax {
  /// Whether the attribute says `frozen: true`.
  var isFrozen: Bool {
    guard case .argumentList(let arguments) = arguments else { return false }
    return arguments.contains {
      $0.label?.text == "frozen" && $0.expression.trimmedDescription == "true"
    }
  }
}
