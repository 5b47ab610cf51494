import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// A stored property of a struct.
struct Field {
  /// The identifier as written in code, with backticks if it needs them.
  let identifier: String
  let isConstant: Bool
  /// Nil if it is inferred from the initial value.
  let type: TypeSyntax?
  /// The initial value; the text `nil` if that is implied.
  let initial: String?
  let isPulse: Bool
  let isIgnored: Bool
  let isEphemeral: Bool
  /// Whether a check of its own says that its type can travel (`TravelCheckMacro`).
  let isChecked: Bool
  /// The attribute `@Settable`, if the field has it.
  let settable: AttributeSyntax?
  /// The type of the initial value, if it is a literal that shows it.
  let initialType: TypeSyntax?

  /// The name that peers know.
  var name: String { identifier.filter { $0 != "`" } }
  /// The name of the stored property: a property wrapper has its own.
  var storage: String { isPulse ? "_\(name)" : identifier }
  /// The last component of a key path to the field.
  var projection: String { isPulse ? "$\(name)" : identifier }
  /// The name of a local variable for the field.
  var local: String { "_\(name)" }
}

/// Reads the stored properties of a struct.
struct FieldReader {
  var fields: [Field] = []
  var complaints = Complaints()

  init(_ declaration: StructDeclSyntax) {
    for member in declaration.memberBlock.members { read(member.decl) }
  }

  private mutating func read(_ declaration: DeclSyntax) {
    if let conditional = declaration.as(IfConfigDeclSyntax.self) { return refuse(conditional) }
    guard let variable = declaration.as(VariableDeclSyntax.self),
      !variable.modifiers.contains(where: { ["static", "class"].contains($0.name.text) })
    else { return }
    // `var a, b: Int` has its type after the last name.
    var type: TypeSyntax?
    var read: [Field] = []
    for binding in variable.bindings.reversed() {
      type = binding.typeAnnotation?.type ?? (binding.initializer == nil ? type : nil)
      if let field = field(variable, binding, type) { read.append(field) }
    }
    fields += read.reversed()
  }

  /// Peers built in different ways would disagree about the fields.
  private mutating func refuse(_ conditional: IfConfigDeclSyntax) {
    for clause in conditional.clauses {
      guard case .decls(let members) = clause.elements else { continue }
      for member in members {
        guard let variable = member.decl.as(VariableDeclSyntax.self),
          variable.bindings.contains(where: { $0.accessorBlock == nil })
        else { continue }
        complaints.add(
          "conditional", at: clause.poundKeyword,
          "A field cannot stand inside '#if': every peer has to have the same fields.")
        return
      }
    }
  }

  private mutating func field(
    _ variable: VariableDeclSyntax, _ binding: PatternBindingSyntax, _ type: TypeSyntax?
  ) -> Field? {
    if binding.accessorBlock?.isComputed == true { return nil }
    let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
    if isConstant && binding.initializer != nil { return nil }
    guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
      complaints.add(
        "pattern", at: binding.pattern, "Every field needs a declaration of its own.")
      return nil
    }
    let isIgnored = variable.attributes.named("Ignored") != nil
    let implied = !isConstant && type?.is(OptionalTypeSyntax.self) == true
    let field = Field(
      identifier: pattern.identifier.text, isConstant: isConstant, type: type?.trimmed,
      initial: binding.initializer?.value.trimmedDescription ?? (implied ? "nil" : nil),
      isPulse: variable.attributes.named("Pulse") != nil, isIgnored: isIgnored,
      isEphemeral: variable.attributes.named("Ephemeral") != nil,
      isChecked: variable.attributes.named("Pulse") == nil && !binding.isKnownToTravel,
      settable: variable.attributes.named("Settable"),
      initialType: binding.initializer?.value.literalType)
    checkMarks(field, variable, binding)
    checkModifiers(field, variable)
    if !isIgnored { checkTravelling(field, variable, binding, type) }
    return field
  }

  /// Check the requirements of `@Ignored` and `@Ephemeral`.
  private mutating func checkMarks(
    _ field: Field, _ variable: VariableDeclSyntax, _ binding: PatternBindingSyntax
  ) {
    let (ignored, ephemeral) = (
      variable.attributes.named("Ignored"), variable.attributes.named("Ephemeral")
    )
    if ignored != nil, let ephemeral {
      complaints.add(
        "ignoredAndEphemeral", at: ephemeral,
        "An ignored field never travels, so it is never in a file either.",
        fixIts: [.remove(ephemeral, from: variable)])
      return
    }
    guard let mark = ignored ?? ephemeral, field.initial == nil else { return }
    complaints.add(
      "noDefault", at: binding.pattern,
      "'\(field.name)' needs an initial value, which it takes where none comes.",
      fixIts: [.remove(mark, from: variable)])
  }

  private mutating func checkModifiers(_ field: Field, _ variable: VariableDeclSyntax) {
    for modifier in variable.modifiers {
      switch modifier.name.text {
      case "lazy":
        complaints.add(
          "lazy", at: modifier,
          "A lazy property changes the state when it is read; make it computed, or give it a value."
        )
      case "weak", "unowned":
        complaints.add(
          "reference", at: modifier,
          "A state holds values; a reference could be changed from anywhere.")
      default: break
      }
    }
  }

  /// Check the restrictions on a field that travels.
  private mutating func checkTravelling(
    _ field: Field, _ variable: VariableDeclSyntax, _ binding: PatternBindingSyntax,
    _ type: TypeSyntax?
  ) {
    if field.name == "isAbsent" {
      complaints.add(
        "reservedName", at: binding.pattern,
        "'isAbsent' says of a value that it stands for nothing.")
    }
    for attribute in variable.attributes.wrappers {
      complaints.add(
        "propertyWrapper", at: attribute,
        "What '@\(attribute.attributeName.trimmedDescription)' stores cannot be seen from here; "
          + "only '@Pulse' is known.",
        fixIts: [.remove(attribute, from: variable)])
    }
    if let observers = binding.accessorBlock {
      complaints.add(
        "observer", at: observers,
        "An observer would run again in every mirror, and change the state there.",
        fixIts: [
          .replace(
            "Remove the observers", "removeObservers", binding,
            with: binding.with(\.accessorBlock, nil).trimmed)
        ])
    }
    if let type { return complaints.check(type) }
    guard let value = binding.initializer?.value else { return }
    if value.is(ClosureExprSyntax.self) {
      complaints.add("function", at: value, "A function cannot travel to another process.")
    } else if let tuple = value.as(TupleExprSyntax.self), tuple.elements.count != 1 {
      complaints.add(
        "tuple", at: value, "A tuple cannot travel; make it a struct with '@ObservableState'.")
    }
  }
}

extension AccessorBlockSyntax {
  /// Whether the property stores nothing: its accessors are not observers.
  fileprivate var isComputed: Bool {
    guard case .accessors(let accessors) = accessors else { return true }
    return !accessors.contains { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
  }
}

extension ExprSyntax {
  /// The type that Swift gives the literal where no other is asked for; nil for other expressions.
  fileprivate var literalType: TypeSyntax? {
    if self.is(IntegerLiteralExprSyntax.self) { return "Int" }
    if self.is(FloatLiteralExprSyntax.self) { return "Double" }
    if self.is(BooleanLiteralExprSyntax.self) { return "Bool" }
    if self.is(StringLiteralExprSyntax.self) { return "String" }
    return self.as(PrefixOperatorExprSyntax.self)?.expression.literalType
  }
}

extension AttributeListSyntax {
  /// The attribute of this name, with or without a module name in front.
  func named(_ name: String) -> AttributeSyntax? {
    lazy.compactMap { $0.as(AttributeSyntax.self) }.first { $0.shortName == name }
  }

  /// The attributes that may be unknown property wrappers.
  fileprivate var wrappers: [AttributeSyntax] {
    compactMap { $0.as(AttributeSyntax.self) }.filter {
      $0.shortName.first?.isUppercase == true
        && !["Pulse", "Ignored", "Ephemeral", "Settable"].contains($0.shortName)
    }
  }
}

extension AttributeSyntax {
  fileprivate var shortName: String {
    attributeName.as(MemberTypeSyntax.self)?.name.text
      ?? attributeName.as(IdentifierTypeSyntax.self)?.name.text ?? ""
  }
}
