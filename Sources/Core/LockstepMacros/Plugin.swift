import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct LockstepPlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    ObservableStateMacro.self, ActionMacro.self, MarkerMacro.self, TravelCheckMacro.self,
  ]
}
