import CBOR
import Values

/// The places of a mirror that patches changed, relative to the mirror's path: every part that changed
/// is at one of them or inside.
struct ChangedPlaces {
  /// As JSON Pointers.
  private(set) var pointers: Set<String> = []

  /// Beyond this many, the whole counts as changed: whoever reads that many looks at everything.
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
    if isWhole { return }
    if pointer.isEmpty || pointers.count == Self.most { return becomeWhole() }
    pointers.insert(pointer)
  }

  /// Add the places that a patch changes; one without bytes is a snapshot.
  mutating func note(_ patch: [UInt8]) {
    if isWhole { return }
    var path = Path()
    do throws(CBORError) {
      try CBORDecoder.read(patch, depth: 2 * CBORDecoder.defaultDepth) {
        (decoder) throws(CBORError) in try read(&decoder, &path)
      }
    } catch {
      becomeWhole()
    }
  }

  /// Read the next item, the patch of the value at a path (`Protocols/wire.md`, Patches).
  private mutating func read(
    _ patch: inout CBORDecoder, _ path: inout Path
  ) throws(CBORError) {
    switch try patch.peekMajor() {
    case .map: try readEntries(&patch, &path)
    case .array:
      guard try patch.isArrayOfOneNext() else { return try readElements(&patch, &path) }
      try patch.skip()
      insert(path.pointer)
    case .unsigned, .negative, .bytes, .text, .tag, .simple:
      try patch.skip()
      insert(path.pointer)
    }
  }

  private mutating func readEntries(
    _ patch: inout CBORDecoder, _ path: inout Path
  ) throws(CBORError) {
    for _ in 0..<(try patch.map()) {
      path.keys.append(try PathKey(from: &patch))
      try read(&patch, &path)
      path.keys.removeLast()
    }
    patch.close()
  }

  /// `[splices, edits]`: a splice moves the elements behind it, so it changes the array.
  private mutating func readElements(
    _ patch: inout CBORDecoder, _ path: inout Path
  ) throws(CBORError) {
    _ = try patch.array()
    let splices = try patch.array()
    for _ in 0..<splices { try patch.skip() }
    patch.close()
    if splices > 0 { insert(path.pointer) }
    for _ in 0..<(try patch.map()) {
      path.keys.append(try PathKey(from: &patch))
      if splices > 0 { try patch.skip() } else { try read(&patch, &path) }
      path.keys.removeLast()
    }
    patch.close()
    patch.close()
  }
}
