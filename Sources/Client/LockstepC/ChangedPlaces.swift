import CBOR
import Values

/// The places of a mirror that patches changed, relative to the mirror's path: every part that changed
/// is at one of them or inside.
struct ChangedPlaces {
  /// As JSON Pointers.
  private(set) var pointers: Set<String> = []

  /// Beyond this many, the whole counts as changed: a reader of so many looks at everything anyway.
  private static let most = 1000

  static let whole: ChangedPlaces = {
    var places = ChangedPlaces()
    places.becomeWhole()
    return places
  }()

  private var isWhole: Bool { pointers.count == 1 && pointers.contains("") }

  private mutating func becomeWhole() { pointers = [""] }

  mutating func formUnion(_ other: ChangedPlaces) {
    if isWhole { return }
    for pointer in other.pointers { insert(pointer) }
  }

  private mutating func insert(_ pointer: String) {
    if isWhole || pointers.contains(pointer) { return }
    if pointer.isEmpty || pointers.count == Self.most { return becomeWhole() }
    pointers.insert(pointer)
  }

  /// Add the places that a patch changes; one without bytes is a snapshot.
  mutating func note(_ patch: [UInt8]) {
    if isWhole { return }
    var pointer: [UInt8] = []
    pointer.reserveCapacity(64)
    do throws(CBORError) {
      try CBORDecoder.read(patch, depth: 2 * CBORDecoder.defaultDepth) {
        (decoder) throws(CBORError) in try read(&decoder, &pointer)
      }
    } catch {
      becomeWhole()
    }
  }

  private mutating func insert(_ pointer: [UInt8]) {
    insert(String(decoding: pointer, as: UTF8.self))
  }

  /// Read the next item, the patch of the value at a JSON Pointer (`Protocols/wire.md`, Patches).
  private mutating func read(
    _ patch: inout CBORDecoder, _ pointer: inout [UInt8]
  ) throws(CBORError) {
    switch try patch.peekMajor() {
    case .map: try readEntries(&patch, &pointer)
    case .array:
      guard try patch.isArrayOfOneNext() else { return try readElements(&patch, &pointer) }
      try patch.skip()
      insert(pointer)
    case .unsigned, .negative, .bytes, .text, .tag, .simple:
      try patch.skip()
      insert(pointer)
    }
  }

  private mutating func readEntries(
    _ patch: inout CBORDecoder, _ pointer: inout [UInt8]
  ) throws(CBORError) {
    for _ in 0..<(try patch.map()) {
      let length = pointer.count
      try Self.appendKey(&patch, to: &pointer)
      try read(&patch, &pointer)
      pointer.removeSubrange(length...)
    }
    patch.close()
  }

  /// `[splices, edits]`: a splice moves the elements behind it, so it changes the array.
  private mutating func readElements(
    _ patch: inout CBORDecoder, _ pointer: inout [UInt8]
  ) throws(CBORError) {
    _ = try patch.array()
    let splices = try patch.array()
    for _ in 0..<splices { try patch.skip() }
    patch.close()
    if splices > 0 { insert(pointer) }
    for _ in 0..<(try patch.map()) {
      let length = pointer.count
      try Self.appendKey(&patch, to: &pointer)
      if splices > 0 { try patch.skip() } else { try read(&patch, &pointer) }
      pointer.removeSubrange(length...)
    }
    patch.close()
    patch.close()
  }

  /// Append the next item, a key, as a token of a JSON Pointer.
  private static func appendKey(
    _ patch: inout CBORDecoder, to pointer: inout [UInt8]
  ) throws(CBORError) {
    pointer.append(UInt8(ascii: "/"))
    switch try PathKey(from: &patch) {
    case .integer(let number): pointer.append(contentsOf: String(number).utf8)
    case .text(let text):
      for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "~"): pointer.append(contentsOf: [byte, UInt8(ascii: "0")])
        case UInt8(ascii: "/"): pointer.append(contentsOf: [UInt8(ascii: "~"), UInt8(ascii: "1")])
        default: pointer.append(byte)
        }
      }
    }
  }
}
