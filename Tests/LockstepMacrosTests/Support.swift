import SwiftDiagnostics
import SwiftParser
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import LockstepMacros

private let macros: [String: MacroSpec] = [
  "ObservableState": MacroSpec(
    type: ObservableStateMacro.self,
    conformances: ["ObservableState", "SynchronizableScalar", "CasePathable"]),
  "Action": MacroSpec(
    type: ActionMacro.self,
    conformances: [
      "SynchronizableAction", "SynchronizableScalar", "CasePathable", "BindableAction",
    ]),
  "Ignored": MacroSpec(type: MarkerMacro.self), "Ephemeral": MacroSpec(type: MarkerMacro.self),
  "Fallback": MacroSpec(type: MarkerMacro.self), "Settable": MacroSpec(type: MarkerMacro.self),
  "_Travels": MacroSpec(type: TravelCheckMacro.self),
]

/// Expects that a source expands to another.
func expectExpansion(
  _ source: String, _ expanded: String, _ complaints: [DiagnosticSpec] = [], fixed: String? = nil,
  at location: Testing.SourceLocation = #_sourceLocation
) {
  assertMacroExpansion(
    source, expandedSource: expanded, diagnostics: complaints, macroSpecs: macros,
    fixedSource: fixed, indentationWidth: .spaces(2)
  ) { Issue.record("\($0.message)", sourceLocation: location) }
}

/// Expects that a source is not expanded, with one diagnostic at one place, and checks the result
/// of its fix-it.
func expectComplaint(
  _ source: String, _ message: String, line: Int, column: Int, fixIt: String? = nil,
  fixed: String? = nil, at location: Testing.SourceLocation = #_sourceLocation
) {
  let complaint = DiagnosticSpec(
    message: message, line: line, column: column,
    fixIts: fixIt.map { [FixItSpec(message: $0)] } ?? [])
  expectExpansion(source, bare(source), [complaint], fixed: fixed, at: location)
}

/// The source without our attributes.
private func bare(_ source: String) -> String {
  var result = source
  let names = [
    "@ObservableState ", "@Action ", "@Ignored ", "@Ephemeral ", "@Fallback ", "@Settable ",
  ]
  for name in names {
    result = result.split(separator: name, omittingEmptySubsequences: false).joined()
  }
  return result
}

/// Expects that a source expands without diagnostics.
func expectExpansionSucceeds(
  _ source: String, at location: Testing.SourceLocation = #_sourceLocation
) {
  let (_, complaints) = expansion(of: source)
  #expect(complaints.isEmpty, sourceLocation: location)
}

/// The expansion of a source, and its diagnostics.
func expansion(of source: String) -> (text: String, complaints: [String]) {
  let file = Parser.parse(source: source)
  let context = BasicMacroExpansionContext(
    sourceFiles: [file: .init(moduleName: "Test", fullFilePath: "Test.swift")])
  let expanded = file.expand(
    macroSpecs: macros,
    contextGenerator: {
      BasicMacroExpansionContext(
        sharingWith: context, lexicalContext: $0.allMacroLexicalContexts())
    }, indentationWidth: .spaces(2))
  return (expanded.description, context.diagnostics.map(\.message))
}

/// The source after the fix-it of this message has been applied; nil if there is none.
func fixed(_ source: String, _ message: String) -> String? {
  let file = Parser.parse(source: source)
  let context = BasicMacroExpansionContext(
    sourceFiles: [file: .init(moduleName: "Test", fullFilePath: "Test.swift")])
  _ = file.expand(
    macroSpecs: macros,
    contextGenerator: {
      BasicMacroExpansionContext(
        sharingWith: context, lexicalContext: $0.allMacroLexicalContexts())
    }, indentationWidth: .spaces(2))
  let fixIt = context.diagnostics.flatMap(\.fixIts).first { $0.message.message == message }
  guard let fixIt else { return nil }
  return fixIt.changes.reduce(source) { text, change in
    guard case .replace(let old, let new) = change else { return text }
    guard let range = text.firstRange(of: old.description) else { return text }
    var changed = text
    changed.replaceSubrange(range, with: new.description)
    return changed
  }
}
