public import CBOR

// What the code of the macros calls for a field whose type cannot travel. It makes that code
// compile, so that the author of the field reads one error, that of the field's check
// (`LockstepMacros/TravelCheck.swift`), and not one for each use of the field. The check keeps a
// program with such a field from being built, so none of this is ever called.

extension StructureCoding {
  @_disfavoredOverload
  public static func isSame<T>(_ first: T, _ second: T) -> Bool { unreachable() }

  @_disfavoredOverload
  public static func presence<T>(of value: T) -> Int { unreachable() }

  @_disfavoredOverload
  public static func prefetchStorage<T>(of value: T) { unreachable() }

  @_disfavoredOverload
  public static func encode<T>(_ number: Int, _ value: T, into encoder: inout CBOREncoder) {
    unreachable()
  }

  @_disfavoredOverload
  public static func encode<T>(_ value: T, into encoder: inout CBOREncoder) { unreachable() }

  @_disfavoredOverload
  public static func decode<T>(
    _ value: inout T, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    unreachable()
  }

  @_disfavoredOverload
  public static func decode<T>(
    required value: inout T?, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    unreachable()
  }

  @_disfavoredOverload
  public static func nothing<Root, T>(_ field: (Root) -> T) -> T? { unreachable() }

  @_disfavoredOverload
  public static func required<T>(
    _ value: T?, _ type: @autoclosure () -> String, _ name: StaticString, at offset: Int
  ) throws(CBORError) -> T {
    unreachable()
  }

  @_disfavoredOverload
  public static func difference<T>(
    _ number: Int, _ new: T, _ old: T, _ patch: inout PatchMap, _ encoder: inout CBOREncoder
  ) {
    unreachable()
  }

  @_disfavoredOverload
  public static func apply<T>(
    _ value: inout T, patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    unreachable()
  }

  @_disfavoredOverload
  public static func adopt<T>(_ value: inout T, seed: HashSeed) { unreachable() }

  @_disfavoredOverload
  public static func holdsCollections<Root, T>(_ field: (Root) -> T) -> Bool { unreachable() }

  @_disfavoredOverload
  public static func holdsCollections<T>(_ type: T.Type) -> Bool { unreachable() }

  @_disfavoredOverload
  public static func visit<T, V: PartVisitor>(
    _ new: T?, _ old: T?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    unreachable()
  }

  /// Ends the process: a field whose type cannot travel is in use.
  public static func unreachable() -> Never {
    preconditionFailure("A field whose type cannot travel was compiled.")
  }
}

extension FieldDigest {
  @_disfavoredOverload
  public mutating func add<T>(_ number: Int, _ value: T) { StructureCoding.unreachable() }
}

extension CaseDecoder {
  @_disfavoredOverload
  public mutating func field<T>(
    _ type: @autoclosure () -> String, _ name: StaticString, from decoder: inout CBORDecoder,
    seed: HashSeed
  ) throws(CBORError) -> T {
    StructureCoding.unreachable()
  }

  @_disfavoredOverload
  public mutating func field<T>(
    default value: @autoclosure () -> T, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> T {
    StructureCoding.unreachable()
  }
}

extension SchemaBuilder {
  @_disfavoredOverload
  public mutating func field<Root, T>(
    _ id: Int, _ name: String, _ property: KeyPath<Root, T>, hasDefault: Bool = false
  ) -> Schema.Field {
    StructureCoding.unreachable()
  }

  @_disfavoredOverload
  public mutating func kind<T>(of type: T.Type) -> Schema.Kind { StructureCoding.unreachable() }
}
