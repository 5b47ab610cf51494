import SwiftDiagnostics
import SwiftSyntax

extension Complaints {
  /// Complain about the parts of a type that can never travel.
  mutating func check(_ type: TypeSyntax) {
    if let type = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      let optional = OptionalTypeSyntax(wrappedType: type.wrappedType)
      add(
        "implicitlyUnwrapped", at: type.exclamationMark,
        "An implicitly unwrapped value cannot travel, since it may be absent where it is used.",
        fixIts: [.replace("Use '?'", "useOptional", type, with: optional)])
      return
    }
    if let problem = Self.problem(of: type) {
      add(problem.name, at: type, problem.sentence)
      return
    }
    checkElements(of: type)
    for inner in type.parts { check(inner) }
  }

  private static func problem(of type: TypeSyntax) -> (name: String, sentence: String)? {
    if type.is(FunctionTypeSyntax.self) {
      return ("function", "A function cannot travel to another process.")
    }
    if let tuple = type.as(TupleTypeSyntax.self), tuple.elements.count != 1 {
      return ("tuple", "A tuple cannot travel; make it a struct with '@ObservableState'.")
    }
    if type.is(SomeOrAnyTypeSyntax.self)
      || ["Any", "AnyObject", "Error"].contains(type.trimmedDescription)
    {
      return (
        "existential",
        "'\(type.trimmedDescription)' says too little to be decoded; name a concrete type."
      )
    }
    return nil
  }

  /// Complain about optional elements of a collection.
  private mutating func checkElements(of type: TypeSyntax) {
    for element in type.elements where element.isOptional {
      add(
        "optionalElement", at: element,
        "An element of a collection cannot be optional, since an absent one is a removed one.",
        fixIts: element.as(OptionalTypeSyntax.self).map {
          [.replace("Remove '?'", "removeOptional", $0, with: $0.wrappedType)]
        } ?? [])
    }
  }
}

extension TypeSyntax {
  /// Whether the type is written as an optional.
  var isOptional: Bool {
    self.is(OptionalTypeSyntax.self) || genericName == "Optional"
  }

  /// The name before the generic arguments, without a module or enclosing type.
  private var genericName: String? {
    self.as(IdentifierTypeSyntax.self)?.name.text ?? self.as(MemberTypeSyntax.self)?.name.text
  }

  private var genericArguments: [TypeSyntax] {
    let clause =
      self.as(IdentifierTypeSyntax.self)?.genericArgumentClause
      ?? self.as(MemberTypeSyntax.self)?.genericArgumentClause
    return clause?.arguments.compactMap {
      if case .type(let type) = $0.argument { type } else { nil }
    } ?? []
  }

  /// Whether the type is known by its name to travel.
  var isKnownToTravel: Bool { unknownNames.isEmpty }

  /// The names in the type that are not known to travel, in their order, each once.
  var unknownNames: [String] {
    let parts = parts
    if parts.isEmpty {
      let name = trimmedDescription
      return Self.plainTypes.contains(name) ? [] : [name]
    }
    var names = parts.flatMap(\.unknownNames)
    if let key = keyType?.trimmedDescription, Self.plainTypes.contains(key),
      !Self.keyTypes.contains(key)
    {
      names.insert(key, at: 0)
    }
    if let name = genericName, !Self.containers.contains(name) {
      names.insert(name, at: 0)
    }
    return names.enumerated().filter { !names[..<$0.offset].contains($0.element) }.map(\.element)
  }

  static let plainTypes: Set = [
    "Bool", "Double", "Duration", "Float", "Int", "Int8", "Int16", "Int32", "Int64", "String",
    "UInt", "UInt8", "UInt16", "UInt32", "UInt64",
  ]

  /// Those of `plainTypes` that can be keys.
  private static let keyTypes: Set = ["Int", "Int32", "Int64", "String", "UInt32"]

  /// The type of the keys of a dictionary, or of the elements of a set.
  private var keyType: TypeSyntax? {
    if let type = self.as(DictionaryTypeSyntax.self) { return type.key }
    return genericName == "Dictionary" || genericName == "Set" ? genericArguments.first : nil
  }

  private static let containers: Set = [
    "Array", "Dictionary", "Optional", "Set", "SyncArray", "SyncMap",
  ]

  /// The component types of this type.
  fileprivate var parts: [TypeSyntax] {
    if let type = self.as(OptionalTypeSyntax.self) { return [type.wrappedType] }
    if let type = self.as(ArrayTypeSyntax.self) { return [type.element] }
    if let type = self.as(DictionaryTypeSyntax.self) { return [type.key, type.value] }
    if let type = self.as(AttributedTypeSyntax.self) { return [type.baseType] }
    if let type = self.as(TupleTypeSyntax.self) { return type.elements.map(\.type) }
    return genericArguments
  }

  /// The types of the elements of this collection, its keys included; none for any other type.
  fileprivate var elements: [TypeSyntax] {
    if let type = self.as(ArrayTypeSyntax.self) { return [type.element] }
    if let type = self.as(DictionaryTypeSyntax.self) { return [type.key, type.value] }
    let collections: Set = [
      "Array", "Dictionary", "Set", "SyncArray", "SyncIdentifiedArray", "SyncMap",
    ]
    return genericName.map(collections.contains) == true ? genericArguments : []
  }
}
