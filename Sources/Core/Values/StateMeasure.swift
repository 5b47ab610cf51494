import CBOR

/// How large a state is.
public struct StateMeasure: Equatable, Sendable {
  /// The size of its value form, in bytes.
  public var encoded: Int
  /// Its approximate memory, in bytes (`MemoryEstimate`).
  public var memory: Int

  public init(encoded: Int, memory: Int) {
    self.encoded = encoded
    self.memory = memory
  }
}

/// A state that can be measured in place, without memory for its encoding.
public protocol Measurable {
  /// How large the state is. O(the state).
  var measure: StateMeasure { get }
}

extension StateMeasure {
  /// Measure a state. O(the state). Unless the state is `Measurable`, this temporarily allocates as
  /// many bytes as its value form has.
  public init(of state: some Synchronizable) {
    if let state = state as? any Measurable {
      self = state.measure
      return
    }
    var encoder = CBOREncoder()
    state.encode(into: &encoder)
    var estimate = MemoryEstimate()
    encoder.bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes, depth: .max)
      // The bytes were encoded just above, so they can be read.
      try? estimate.addValue(&decoder)
    }
    self.init(encoded: encoder.bytes.count, memory: estimate.bytes)
  }
}

extension Value: Measurable {
  public var measure: StateMeasure {
    var walk = MeasuringWalk()
    walk.add(self)
    walk.measure.memory += MemoryEstimate.slot
    return walk.measure
  }
}

/// Adds up the encoded size and the memory of the values in a tree.
private struct MeasuringWalk {
  var measure = StateMeasure(encoded: 0, memory: 0)
  /// For numbers, whose length the encoder chooses.
  private var scratch = CBOREncoder()

  /// Add a value, without the slot that holds it.
  mutating func add(_ value: Value) {
    switch value {
    case .null, .bool: measure.encoded += 1
    case .integer, .unsigned, .double:
      value.encode(into: &scratch)
      measure.encoded += scratch.bytes.count
      scratch.bytes.removeAll(keepingCapacity: true)
    case .text(let text): add(string: text.utf8.count, isText: true)
    case .bytes(let bytes): add(string: bytes.count, isText: false)
    case .array(let elements):
      add(container: elements.count)
      measure.memory += MemoryEstimate.slots(elements.count)
      for element in elements { add(element) }
    case .object(let entries):
      add(container: entries.count)
      measure.memory +=
        entries.count * MemoryEstimate.entry + MemoryEstimate.branches(entries.count)
      entries.forEachEntry { key, value in
        add(string: key.utf8.count, isText: true)
        add(value)
      }
    }
  }

  private mutating func add(container count: Int) {
    measure.encoded += CBORDecoder.headLength(UInt64(count))
    measure.memory += MemoryEstimate.container
  }

  private mutating func add(string count: Int, isText: Bool) {
    let whole = CBORDecoder.headLength(UInt64(count)) + count
    measure.encoded += whole
    measure.memory += MemoryEstimate.string(whole, isText: isText)
  }
}
