import CBOR

/// How large a state is.
public struct StateMeasure: Equatable, Sendable {
  /// The bytes of its value form.
  public var encoded: Int
  /// About how much memory it takes (`MemoryEstimate`).
  public var memory: Int

  public init(encoded: Int, memory: Int) {
    self.encoded = encoded
    self.memory = memory
  }
}

/// A state that can be measured where it is, which takes no memory.
public protocol Measurable {
  /// How large the state is. O(the state).
  var measure: StateMeasure { get }
}

extension StateMeasure {
  /// How large a state is. O(the state), and unless it is `Measurable`, as much memory for a moment
  /// as its value form has bytes.
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
      // What was encoded here can be read.
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

/// Adds up what the values of a tree take, as their encoding and in memory.
private struct MeasuringWalk {
  var measure = StateMeasure(encoded: 0, memory: 0)
  /// For numbers, of which the encoder chooses the length.
  private var scratch = CBOREncoder()

  /// Add a value, but for the slot that it stands in.
  mutating func add(_ value: Value) {
    switch value {
    case .null, .bool: measure.encoded += 1
    case .integer, .unsigned, .double:
      value.encode(into: &scratch)
      measure.encoded += scratch.bytes.count
      scratch.bytes.removeAll(keepingCapacity: true)
    case .text(let text): add(string: text.utf8.count)
    case .bytes(let bytes): add(string: bytes.count)
    case .array(let elements):
      add(container: elements.count)
      measure.memory += elements.count * MemoryEstimate.slot
      for element in elements { add(element) }
    case .object(let entries):
      add(container: entries.count)
      measure.memory += entries.count * MemoryEstimate.entry
      entries.forEachEntry { key, value in
        add(string: key.utf8.count)
        add(value)
      }
    }
  }

  private mutating func add(container count: Int) {
    measure.encoded += CBORDecoder.headLength(UInt64(count))
    measure.memory += MemoryEstimate.container
  }

  private mutating func add(string count: Int) {
    let whole = CBORDecoder.headLength(UInt64(count)) + count
    measure.encoded += whole
    measure.memory += MemoryEstimate.string(whole)
  }
}
