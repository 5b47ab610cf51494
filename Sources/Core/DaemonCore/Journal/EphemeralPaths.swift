import CBOR
import Lockstep
import Values

/// The fields of a state that are not journaled (`@Ephemeral`): paths through the fields of
/// structs.
struct EphemeralPaths: Sendable {
  fileprivate struct Node: Sendable {
    var isEphemeral = false
    var fields: [Int64: Node] = [:]
  }

  private var root = Node()

  init() {}

  /// The ephemeral paths of a type of state. O(its fields).
  init<State: Synchronizable>(of type: State.Type) {
    guard let state = type as? any ObservableState.Type else { return }
    for path in EphemeralFields.paths(of: state) { root.insert(path.keys[...]) }
  }

  var isEmpty: Bool { root.fields.isEmpty }

  /// The patch that sets every ephemeral field to its value in a state, whatever it was before.
  func replacement<State: Synchronizable>(from state: State) -> [UInt8] {
    var encoder = CBOREncoder()
    root.encodeReplacement(from: state, at: .root, into: &encoder)
    return encoder.bytes
  }

  /// Append the part of a patch that concerns journaled fields. Returns false, and appends nothing,
  /// if there is none. O(the patch).
  func appendKept(of patch: UnsafeRawBufferPointer, to bytes: inout [UInt8]) -> Bool {
    if isEmpty {
      bytes.append(contentsOf: patch)
      return true
    }
    var encoder = CBOREncoder()
    swap(&encoder.bytes, &bytes)
    defer { swap(&encoder.bytes, &bytes) }
    var decoder = CBORDecoder(patch)
    let start = encoder.bytes.count
    // The patch is our own; if it cannot be read, it is journaled as it is.
    do throws(CBORError) {
      return try root.keep(&decoder, isPatch: true, into: &encoder)
    } catch {
      encoder.bytes.removeSubrange(start...)
      encoder.bytes.append(contentsOf: patch)
      return true
    }
  }
}

extension EphemeralPaths.Node {
  mutating func insert(_ keys: ArraySlice<PathKey>) {
    guard let key = keys.first else {
      isEphemeral = true
      return
    }
    guard case .integer(let number) = key else { return }
    fields[number, default: Self()].insert(keys.dropFirst())
  }

  fileprivate func encodeReplacement<State: Synchronizable>(
    from state: State, at path: Path, into encoder: inout CBOREncoder
  ) {
    if isEphemeral {
      var visitor = WholePart(encoder: encoder)
      State.visit(state, nil, at: path, from: 0, &visitor)
      encoder = visitor.encoder
      return
    }
    // An absent optional struct has no fields.
    let present = fields.filter { entry in
      entry.value.isEphemeral || state.isPresent(at: Path(path.keys + [.integer(entry.key)]))
    }
    encoder.map(present.count)
    for (number, field) in present.sorted(by: { $0.key < $1.key }) {
      let key = PathKey.integer(number)
      key.encode(into: &encoder)
      field.encodeReplacement(from: state, at: Path(path.keys + [key]), into: &encoder)
    }
  }

  /// Copy the next item without the ephemeral fields. Returns whether anything is left of a patch.
  func keep(
    _ decoder: inout CBORDecoder, isPatch: Bool, into encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    let first = try decoder.peek()
    if isPatch, try decoder.isArrayOfOneNext() {
      // A replacement: its value.
      _ = try decoder.array()
      encoder.array(1)
      _ = try keep(&decoder, isPatch: false, into: &encoder)
      decoder.close()
      return true
    }
    guard !fields.isEmpty, first >> 5 == 5 else {
      encoder.raw(try decoder.rawItem())
      return true
    }
    let count = try decoder.map()
    var kept = 0
    var entries = CBOREncoder()
    for _ in 0..<count {
      let start = entries.bytes.count
      let key = try PathKey(from: &decoder)
      key.encode(into: &entries)
      guard case .integer(let number) = key, let field = fields[number] else {
        entries.raw(try decoder.rawItem())
        kept += 1
        continue
      }
      if field.isEphemeral {
        try decoder.skip()
      } else if try field.keep(&decoder, isPatch: isPatch, into: &entries) {
        kept += 1
        continue
      }
      entries.bytes.removeSubrange(start...)
    }
    decoder.close()
    if isPatch && kept == 0 { return false }
    encoder.map(kept)
    encoder.raw(entries.bytes)
    return true
  }
}

/// The patch that sets a path to its value, whatever it was before.
private struct WholePart: PartVisitor {
  var encoder: CBOREncoder
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
    if let new, !new.isAbsent {
      new.encodeReplacement(into: &encoder)
    } else {
      visitAbsent()
    }
  }
  mutating func visitAbsent() { encoder.encodeUndefined() }
}
