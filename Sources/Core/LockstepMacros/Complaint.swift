import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// The reason why a declaration cannot travel: a sentence for its author.
struct Complaint: DiagnosticMessage {
  let message: String
  /// An identifier for tools.
  let name: String
  var severity = DiagnosticSeverity.error

  var diagnosticID: MessageID { MessageID(domain: "Lockstep", id: name) }
}

/// A fix that the compiler offers for a complaint.
struct Remedy: FixItMessage {
  let message: String
  let name: String
  var fixItID: MessageID { MessageID(domain: "Lockstep", id: name) }
}

/// Collects complaints while a declaration is read, so that all are reported at once.
struct Complaints {
  private(set) var diagnostics: [Diagnostic] = []

  var isEmpty: Bool { diagnostics.isEmpty }

  mutating func add(
    _ name: String, at node: some SyntaxProtocol, _ message: String, fixIts: [FixIt] = []
  ) {
    diagnostics.append(
      Diagnostic(node: node, message: Complaint(message: message, name: name), fixIts: fixIts))
  }

  func report(to context: some MacroExpansionContext) {
    for diagnostic in diagnostics { context.diagnose(diagnostic) }
  }
}

extension FixIt {
  /// Replace one node by another.
  static func replace(
    _ message: String, _ name: String, _ old: some SyntaxProtocol, with new: some SyntaxProtocol
  ) -> FixIt {
    FixIt(
      message: Remedy(message: message, name: name),
      changes: [.replace(oldNode: Syntax(old), newNode: Syntax(new))])
  }

  /// Remove an attribute from a declaration.
  static func remove(
    _ attribute: AttributeSyntax, from declaration: some WithAttributesSyntax
  ) -> FixIt {
    let rest = declaration.attributes.filter { $0.id != attribute.id }
    return replace(
      "Remove '@\(attribute.attributeName.trimmedDescription)'", "removeAttribute", declaration,
      with: declaration.with(\.attributes, rest).with(\.leadingTrivia, declaration.leadingTrivia))
  }
}
