import Access
import CBOR
import Values

/// The places that a patch changes, as deep as it leads through objects, maps and structs: those whose
/// value was replaced, removed or put in, and arrays, through which no path leads, however little of
/// them has changed.
struct ChangedPlaces {
  struct Place {
    /// As it travels, and as a JSON Pointer of the names that people use.
    let path: Path
    let pointer: String
    /// Passes what may be seen there; nil for all.
    let filter: ViewFilter?
  }

  let schema: Schema
  private(set) var places: [Place] = []

  init(schema: Schema) { self.schema = schema }

  /// Find the places at or below one. O(the bytes of the patch, times the depth).
  mutating func find(
    in patch: UnsafeRawBufferPointer, below place: Place
  ) throws(CBORError) {
    switch place.path.projection(of: patch) {
    case .untouched: break
    case .value, .absent: places.append(place)
    case .patch(let range):
      var decoder = CBORDecoder(UnsafeRawBufferPointer(rebasing: patch[range]))
      try find(&decoder, below: place, schema.kind(at: place.path))
    }
  }

  private mutating func find(
    _ decoder: inout CBORDecoder, below place: Place, _ kind: Schema.Kind?
  ) throws(CBORError) {
    guard try decoder.peekMajor() == .map else {
      places.append(place)
      return try decoder.skip()
    }
    for _ in 0..<(try decoder.map()) {
      let key = try PathKey(from: &decoder)
      let (name, kind) = schema.name(of: key, in: kind)
      let part = Place(
        path: Path(place.path.keys + [key]), pointer: place.pointer + Path([name]).pointer,
        filter: place.filter?.entry(key))
      try find(&decoder, below: part, kind)
    }
    decoder.close()
  }
}
