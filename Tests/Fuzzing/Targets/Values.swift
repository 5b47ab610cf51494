import CBOR
import Values

/// A value survives a round trip, its digest depends only on the value and the seed, and equal
/// objects have equal bytes whatever edits made them.
func fuzzValue(_ given: Input) {
  var input = given
  guard let value = input.value() else { return }
  requireSound(value, "the value")
  let bytes = encoded { value.encode(into: &$0) }
  require((try? CBORItem(bytes)) != nil, "a value is one well-formed item")

  var other = value
  other.adopt(seed: otherSeed)
  require(other.isSame(as: value), "the value under another seed is the same")
  let direct = decodedValue(bytes, seed: otherSeed)
  require(
    encoded { other.encode(into: &$0) } == encoded { direct.encode(into: &$0) },
    "adopting a seed is as good as decoding with it")
  require(other.digest(otherSeed) == direct.digest(otherSeed), "nor does the digest differ")

  requireCanonical(value)
}

/// Requires that no object inside depends on the edits that made it.
private func requireCanonical(_ value: Value) {
  switch value {
  case .object(let entries):
    let pairs = entries.map { ($0.key, $0.value) }
    require(pairs.count == entries.count, "an object counts its members")
    var made = TrieMap<String, Value>(seed: entries.seed)
    made.updateValue(.null, forKey: "transient")
    for (key, value) in pairs.reversed() { made.updateValue(value, forKey: key) }
    for (key, _) in pairs { made.updateValue(.bool(true), forKey: key + "-") }
    for (key, _) in pairs where entries[key + "-"] == nil { made.removeValue(forKey: key + "-") }
    for (key, value) in pairs { made.updateValue(value, forKey: key) }
    if entries["transient"] == nil { made.removeValue(forKey: "transient") }
    require(made.isSame(as: entries), "an object does not show how it was made")
    require(
      encoded { made.encode(into: &$0) } == encoded { entries.encode(into: &$0) },
      "nor do its bytes")
    require(made.digest(seed: testSeed) == entries.digest(seed: testSeed), "nor does its digest")
    require(made.nodeCount == entries.nodeCount, "nor do its nodes")
    for (key, value) in pairs {
      require(entries[key]?.isSame(as: value) == true, "an object has the members it lists")
      requireCanonical(value)
    }
  case .array(let elements):
    require(Array(elements).count == elements.count, "an array counts its elements")
    for element in elements { requireCanonical(element) }
  case .null, .bool, .integer, .unsigned, .double, .text, .bytes: return
  }
}

/// The law of patches, for any two values. Input: the two values.
func fuzzDifference(_ given: Input) {
  var input = given
  guard let old = input.value(), let new = input.value() else { return }
  requireLaw(from: old, to: new)
  requireLaw(from: new, to: old)
}

/// Requires that the difference between two values turns one into the other, also for their parts.
func requireLaw(from old: Value, to new: Value) {
  guard let patch = difference(from: old, to: new) else {
    require(old.isSame(as: new), "no difference between the same values only")
    return
  }
  require(!old.isSame(as: new), "a difference between different values only")
  require(isSound(patch), "a patch is one well-formed item")
  var patched = old
  if let error = apply(patch, to: &patched) {
    fatalError("Broken: our own patch applies: \(error), \(hex(patch))")
  }
  require(patched.isSame(as: new), "the difference makes one value of the other")
  requireSound(patched, "the patched value")
  for path in paths(in: old) + paths(in: new) {
    requireProjection(of: patch, at: path, from: old.scoped(to: path), to: new.scoped(to: path))
  }
}

private func requireProjection(
  of patch: [UInt8], at path: Path, from old: Value?, to new: Value?
) {
  var result = old
  patch.withUnsafeBytes { bytes in
    switch path.projection(of: bytes) {
    case .untouched: break
    case .absent: result = nil
    case .value(let range): result = decodedValue(Array(bytes[range]))
    case .patch(let range):
      if let error = apply(Array(bytes[range]), to: &result) {
        fatalError("Broken: a part of a patch is a patch of the part: \(error) at \(path)")
      }
    }
  }
  require(result.isSame(as: new), "the part of the patch at \(path) makes the part there")
}

/// Some paths through objects.
private func paths(in value: Value) -> [Path] {
  var found: [Path] = [.root, ["absent"]]
  func visit(_ value: Value, _ path: Path) {
    guard case .object(let entries) = value else { return }
    for (key, child) in entries where found.count < 24 {
      found.append(Path(path.keys + [.text(key)]))
      visit(child, Path(path.keys + [.text(key)]))
    }
  }
  visit(value, .root)
  return found
}

func difference(from old: Value, to new: Value) -> [UInt8]? {
  var encoder = CBOREncoder()
  let changed = new.encodeDifference(from: old, into: &encoder)
  require(changed != encoder.bytes.isEmpty, "a patch is made when, and only when, one is told of")
  return changed ? encoder.bytes : nil
}

/// Applies a whole patch. Returns the error if it does not apply.
func apply(_ patch: [UInt8], to value: inout some Synchronizable) -> CBORError? {
  do throws(CBORError) {
    try CBORDecoder.read(patch, depth: ampleDepth) { decoder throws(CBORError) in
      try value.apply(patch: &decoder, seed: testSeed)
    }
    return nil
  } catch {
    return error
  }
}

private func isSound(_ patch: [UInt8]) -> Bool {
  (try? CBORItem(patch, depth: ampleDepth)) != nil
}
