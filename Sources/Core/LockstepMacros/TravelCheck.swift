import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

// Theory of operation
//
// Whether the type of a field can travel, only the compiler knows: it must conform to
// `Synchronizable`. So that a type that cannot costs its author one error, with what to do about it,
// the code of the macros accepts every type (`Values/Types/UncheckedFields.swift`), and calls, for
// each value whose type is not known by its name, a function that compiles if the type conforms. If
// not, the call is of an unavailable function, whose message is the error.
//
// A name may be another type's than it seems: a `Duration` of the author's own. So values that have
// no such check are compared by a method that only types that travel have: no program is built in
// which a value was checked by its name alone.
//
// A field gets an attribute for that, `@_Travels`, so that the error is at the field. Cases, and the
// fields of `var a, b: Point`, cannot have it, since it would expand once for each name; theirs is
// an error of the type.

/// `@_Travels`: checks that the type of a field can travel.
enum TravelCheckMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] {
    guard let variable = declaration.as(VariableDeclSyntax.self) else { return [] }
    let generics = context.genericParameterNames
    return UncheckedField.all(in: variable).flatMap { field in
      let function = "_travels_\(field.name)"
      let advice = TravelAdvice(names: field.names, generics: generics)
      return advice.functions(function, of: field.name, "_: T") + [
        "private static func \(function)(_ state: Self) { \(function)(state.\(field.identifier)) }"
      ]
    }.map { DeclSyntax(stringLiteral: $0) }
  }

  /// The attribute for a member of a state; none if its type is known to travel, or the state has
  /// complaints.
  static func attributes(
    for member: some DeclSyntaxProtocol, of declaration: some DeclGroupSyntax,
    in context: some MacroExpansionContext
  ) -> [AttributeSyntax] {
    guard let variable = member.as(VariableDeclSyntax.self), variable.bindings.count == 1,
      !UncheckedField.all(in: variable).isEmpty,
      let declaration = declaration.as(StructDeclSyntax.self)
    else { return [] }
    let reader = FieldReader(declaration)
    let target = Target(declaration, generics: declaration.genericParameterClause, in: context)
    guard reader.complaints.isEmpty, SettingWriter(target, reader.fields).complaints.isEmpty
    else { return [] }
    return [AttributeSyntax(attributeName: TypeSyntax("_Travels"))]
  }
}

/// A field whose type is not known by its name to travel.
private struct UncheckedField {
  let identifier: String
  /// The names of types that may not travel.
  let names: [String]

  var name: String { identifier.filter { $0 != "`" } }

  static func all(in variable: VariableDeclSyntax) -> [UncheckedField] {
    // The value of a pulse is checked by the property wrapper.
    guard variable.attributes.named("Ignored") == nil, variable.attributes.named("Pulse") == nil,
      !variable.modifiers.contains(where: { ["static", "class", "lazy"].contains($0.name.text) })
    else { return [] }
    let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
    return variable.bindings.compactMap { binding in
      guard binding.accessorBlock == nil, !(isConstant && binding.initializer != nil),
        let identifier = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text
      else { return nil }
      if binding.isKnownToTravel { return nil }
      let (type, initial) = (binding.typeAnnotation?.type, binding.initializer?.value)
      return UncheckedField(
        identifier: identifier, names: type?.unknownNames ?? initial?.calledTypes ?? [])
    }
  }
}

extension StructureWriter {
  /// The check of the fields that share a declaration: `var a, b: Point`.
  static func travelCheck(_ declaration: StructDeclSyntax, _ generics: Set<String>) -> [String] {
    let fields = declaration.memberBlock.members
      .compactMap { $0.decl.as(VariableDeclSyntax.self) }.filter { $0.bindings.count > 1 }
      .flatMap(UncheckedField.all)
    if fields.isEmpty { return [] }
    let functions = fields.flatMap { field in
      TravelAdvice(names: field.names, generics: generics)
        .functions("_travels", of: field.name, "\(field.identifier): T")
    }
    let calls = fields.map { "_travels(\($0.identifier): state.\($0.identifier))" }
    return functions + ["private static func _travels(_ state: Self) {\n\(lines(calls))\n}"]
  }
}

extension EnumerationWriter {
  /// The check of the values that the cases carry.
  func travelCheck(_ generics: Set<String>) -> [String] {
    let values = cases.flatMap { item in
      item.payload.enumerated().filter { !$0.element.type.isKnownToTravel }
        .map { (item: item.name, label: "\(item.name)_\($0.offset)", type: $0.element.type) }
    }
    if values.isEmpty { return [] }
    let functions = values.flatMap { value in
      TravelAdvice(names: value.type.unknownNames, generics: generics)
        .functions("_travels", of: value.item, "\(value.label): T.Type")
    }
    let calls = values.map { "_travels(\($0.label): (\($0.type)).self)" }
    return functions + ["private static func _travels() {\n\(lines(calls))\n}"]
  }
}

/// What to do so that values of these types can travel.
private struct TravelAdvice {
  let names: [String]
  let generics: Set<String>

  /// A function that takes what can travel, and one that is an error for anything else.
  func functions(_ name: String, of subject: String, _ parameter: String) -> [String] {
    let message = "'\(subject)' cannot travel to other processes: \(text)"
    return [
      "private static func \(name)<T: Values.Synchronizable>(\(parameter)) {}",
      "@_disfavoredOverload @available(*, unavailable, message: \"\(message)\")\n"
        + "private static func \(name)<T>(\(parameter)) {}",
    ]
  }

  /// The types for which `LockstepFoundation` has conformances.
  private static let foundation: Set = ["Data", "Date", "UUID"]

  private var text: String {
    let parts = [
      advice("import LockstepFoundation for ", isFoundation),
      advice("use a key of another type than ", TypeSyntax.plainTypes.contains),
      advice("constrain to Synchronizable ", generics.contains),
      advice("put @Action on ") { isOwn($0) && $0.hasSuffix("Action") },
      advice("put @ObservableState on ") { isOwn($0) && !$0.hasSuffix("Action") },
    ].compactMap(\.self)
    return parts.isEmpty ? "put @ObservableState on its type" : parts.joined(separator: ", and ")
  }

  private func advice(_ beginning: String, _ belongs: (String) -> Bool) -> String? {
    let names = names.filter(belongs)
    return names.isEmpty ? nil : beginning + names.joined(separator: " and ")
  }

  private func isFoundation(_ name: String) -> Bool { Self.foundation.contains(name.unqualified) }

  private func isOwn(_ name: String) -> Bool {
    !isFoundation(name) && !generics.contains(name) && !TypeSyntax.plainTypes.contains(name)
  }
}

extension MacroExpansionContext {
  /// The generic parameters of the types around the macro.
  var genericParameterNames: Set<String> {
    Set(
      lexicalContext.flatMap {
        $0.asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause?.parameters
          .map(\.name.text) ?? []
      })
  }
}

extension String {
  /// The last name of a qualified one.
  fileprivate var unqualified: String { split(separator: ".").last.map(String.init) ?? self }
}

extension PatternBindingSyntax {
  /// Whether the type of a field is known to travel, by its name or by a literal.
  var isKnownToTravel: Bool {
    typeAnnotation?.type.isKnownToTravel ?? initializer?.value.isLiteral ?? false
  }
}

extension ExprSyntax {
  /// Whether it is a literal of values that can travel.
  fileprivate var isLiteral: Bool {
    if let array = self.as(ArrayExprSyntax.self) {
      return array.elements.allSatisfy(\.expression.isLiteral)
    }
    if let number = self.as(PrefixOperatorExprSyntax.self) { return number.expression.isLiteral }
    return self.is(IntegerLiteralExprSyntax.self) || self.is(FloatLiteralExprSyntax.self)
      || self.is(StringLiteralExprSyntax.self) || self.is(BooleanLiteralExprSyntax.self)
  }

  /// The type that the expression calls, or whose member it names.
  fileprivate var calledTypes: [String] {
    if let call = self.as(FunctionCallExprSyntax.self) { return call.calledExpression.calledTypes }
    if let name = self.as(DeclReferenceExprSyntax.self)?.baseName.text {
      return name.first?.isUppercase == true ? [name] : []
    }
    guard let member = self.as(MemberAccessExprSyntax.self) else { return [] }
    if member.declName.baseName.text.first?.isUppercase == true {
      return [member.trimmedDescription]
    }
    return member.base?.calledTypes ?? []
  }
}
