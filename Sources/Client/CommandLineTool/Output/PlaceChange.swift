import CBOR
import Values

/// A place of a document whose value changed: nil where there was or is none.
///
/// The changes of an array say in order what to do with it: a removal moves the elements behind
/// it, and so does an insertion.
struct PlaceChange: Equatable {
  let path: Path
  let old: Value?
  let new: Value?

  /// The places under `path` that differ between two values there. `steps` lead from there to the
  /// places that are of interest, `*` through every key; places below those are told apart as far as
  /// the values do. O(what differs), and the whole of an array that `steps` lead into.
  static func all(
    from old: Value?, to new: Value?, at path: Path, along steps: ArraySlice<PathKey>
  ) throws(CBORError) -> [PlaceChange] {
    var finder = Finder()
    try finder.find(old, new, at: path, along: steps)
    return finder.changes
  }

  private struct Finder {
    var changes: [PlaceChange] = []

    mutating func find(
      _ old: Value?, _ new: Value?, at path: Path, along steps: ArraySlice<PathKey>
    ) throws(CBORError) {
      guard let step = steps.first else { return try note(old, new, at: path) }
      let keys = step == "*" ? try Self.keys(of: old, new) : [step]
      for key in keys {
        try find(
          old?.child(key), new?.child(key), at: Path(path.keys + [key]), along: steps.dropFirst())
      }
    }

    /// The keys of the parts of either value; of two objects only where they differ.
    private static func keys(of old: Value?, _ new: Value?) throws(CBORError) -> [PathKey] {
      if case .object? = old, case .object? = new {
        var patch = CBOREncoder()
        guard new.encodeDifference(from: old, into: &patch) else { return [] }
        let keys = try CBORDecoder.read(patch.bytes) { (decoder) throws(CBORError) in
          var keys: [PathKey] = []
          for _ in 0..<(try decoder.map()) {
            keys.append(.text(try decoder.text()))
            try decoder.skip()
          }
          decoder.close()
          return keys
        }
        return keys.sorted { String.precedes($0.description, $1.description) }
      }
      var keys: Set<PathKey> = []
      for value in [old, new] {
        switch value {
        case .object(let entries)?: for (name, _) in entries { keys.insert(.text(name)) }
        case .array(let elements)?:
          for index in elements.indices { keys.insert(.integer(Int64(index))) }
        case .null?, .bool?, .integer?, .unsigned?, .double?, .text?, .bytes?, nil: break
        }
      }
      return keys.sorted { first, second in
        if case .integer(let first) = first, case .integer(let second) = second {
          return first < second
        }
        return String.precedes(first.description, second.description)
      }
    }

    // MARK: Differences

    private mutating func note(
      _ old: Value?, _ new: Value?, at path: Path
    ) throws(CBORError) {
      var patch = CBOREncoder()
      guard new.encodeDifference(from: old, into: &patch) else { return }
      try CBORDecoder.read(patch.bytes) { (decoder) throws(CBORError) in
        try note(&decoder, old, new, at: path)
      }
    }

    /// Note the next item, the patch that makes one value of another.
    private mutating func note(
      _ decoder: inout CBORDecoder, _ old: Value?, _ new: Value?, at path: Path
    ) throws(CBORError) {
      if decoder.undefinedIfNext() {
        changes.append(PlaceChange(path: path, old: old, new: nil))
      } else if try Value.replacement(from: &decoder, seed: .unseeded) != nil {
        changes.append(PlaceChange(path: path, old: old, new: new))
      } else if try decoder.peekMajor() == .map {
        for _ in 0..<(try decoder.map()) {
          let key = PathKey.text(try decoder.text())
          try note(&decoder, old?.child(key), new?.child(key), at: Path(path.keys + [key]))
        }
        decoder.close()
      } else if case .array(let elements)? = old {
        try noteArray(&decoder, elements, new, at: path)
      } else {
        throw CBORError(.notAllowed("a patch of an array that is none"), at: decoder.offset)
      }
    }

    /// Note the patch of an array: `[[at, removed, [inserted…], …], {index: patch, …}]`.
    private mutating func noteArray(
      _ decoder: inout CBORDecoder, _ old: TreeArray<Value>, _ new: Value?, at path: Path
    ) throws(CBORError) {
      var elements = old
      _ = try decoder.array()
      for _ in 0..<(try decoder.array()) / 3 {
        let start = decoder.offset
        let at = try decoder.unsigned(as: Int.self)
        let removed = try decoder.unsigned(as: Int.self)
        guard at <= elements.count, removed <= elements.count - at else {
          throw CBORError(.notAllowed("a splice outside the array"), at: start)
        }
        var inserted: [Value] = []
        for _ in 0..<(try decoder.array()) {
          inserted.append(try Value(from: &decoder, seed: .unseeded))
        }
        decoder.close()
        for index in 0..<max(removed, inserted.count) {
          let isRemoval = index < removed && index >= inserted.count
          changes.append(
            PlaceChange(
              path: path.element(isRemoval ? at + inserted.count : at + index),
              old: index < removed ? .some(elements[at + index]) : .none,
              new: index < inserted.count ? .some(inserted[index]) : .none))
        }
        elements.replaceSubrange(at..<at + removed, with: inserted)
      }
      decoder.close()
      for _ in 0..<(try decoder.map()) {
        let start = decoder.offset
        let index = try decoder.unsigned(as: Int.self)
        guard index < elements.count else {
          throw CBORError(.notAllowed("an edit outside the array"), at: start)
        }
        let key = PathKey.integer(Int64(index))
        try note(&decoder, elements[index], new?.child(key), at: path.element(index))
      }
      decoder.close()
      decoder.close()
    }
  }
}
