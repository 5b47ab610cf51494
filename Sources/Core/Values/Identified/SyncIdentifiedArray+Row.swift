public import CBOR

extension SyncIdentifiedArray {
  /// An element and its label. It travels as the element alone.
  @frozen
  public struct Row: Synchronizable {
    /// Rises along the order; never travels.
    @usableFromInline var label: UInt64
    public var element: Element

    @inlinable
    init(_ element: Element, label: UInt64) {
      self.label = label
      self.element = element
    }

    @inlinable
    public func isSame(as other: Row) -> Bool { element.isSame(as: other.element) }

    @inlinable
    public func prefetchStorage() { element.prefetchStorage() }

    @inlinable
    public func encode(into encoder: inout CBOREncoder) { element.encode(into: &encoder) }

    /// Decode an element without a label.
    @inlinable
    public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      self.init(try Element(from: &decoder, seed: seed), label: OrderLabel.none)
    }

    @inlinable
    public func encodeDifference(from old: Row, into encoder: inout CBOREncoder) -> Bool {
      element.encodeDifference(from: old.element, into: &encoder)
    }

    /// Apply a patch of the element; the label stays.
    @inlinable
    public mutating func apply(
      patch decoder: inout CBORDecoder, seed: HashSeed
    ) throws(CBORError) {
      try element.apply(patch: &decoder, seed: seed)
    }

    @inlinable
    public func digest(seed: HashSeed) -> UInt64 { element.digest(seed: seed) }

    @inlinable
    public mutating func adopt(seed: HashSeed) { element.adopt(seed: seed) }

    @inlinable public static var holdsCollections: Bool { Element.holdsCollections }

    @inlinable public var isAbsent: Bool { element.isAbsent }

    public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
      Element.schemaKind(in: &schema)
    }

    @inlinable
    public static func visit<V: PartVisitor>(
      _ new: Row?, _ old: Row?, at path: Path, from depth: Int, _ visitor: inout V
    ) {
      Element.visit(new?.element, old?.element, at: path, from: depth, &visitor)
    }
  }
}
