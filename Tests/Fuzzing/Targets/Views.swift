import Access
import CBOR
import Values

/// A filter passes only what the client may see, and of a patch only the part that applies to that.
/// Input: patterns, each a byte that says whether it denies, and a path in which the text `*` is
/// any key; another byte; the value; the patch.
func fuzzView(_ given: Input) {
  var input = given
  var patterns: [Bool: [PathPattern]] = [:]
  while patterns.values.reduce(0, { $0 + $1.count }) < 6 {
    let choice = input.byte()
    guard choice < 2, let path = (input.decode { try Path(from: &$0) }), path.keys.count < 6 else {
      break
    }
    let steps = path.keys.map { $0 == "*" ? PathPattern.Step.any : .key($0) }
    patterns[choice == 1, default: []].append(PathPattern(steps))
  }
  let view = View(granting: patterns[false] ?? [], denying: patterns[true] ?? [])
  let filter = view.filter(at: .root) ?? .nothing
  guard let value = input.value() else { return }
  let before = seen(encoded { value.encode(into: &$0) }, filter)
  requireDigest(of: value)

  let patch = input.bytes
  var filtered = CBOREncoder()
  let outcome = patch.withUnsafeBytes { filter.filter(patch: $0, into: &filtered) }
  require(
    (outcome == .patch) == !filtered.bytes.isEmpty, "only a patch is appended, and a patch is")
  var after: Value? = value
  guard apply(patch, to: &after) == nil else { return }
  let expected = seen(encoded { after.encode(into: &$0) }, filter)
  var mirror = before
  switch outcome {
  case .untouched: break
  case .absent: mirror = nil
  case .patch:
    let error = apply(filtered.bytes, to: &mirror)
    require(error == nil, "what the client has takes \(hex(filtered.bytes))")
  case .resync: return
  }
  require(mirror.isSame(as: expected), "the patch makes what may be seen: \(hex(filtered.bytes))")
}

/// The visible part of an encoded value, or nil.
private func seen(_ bytes: [UInt8], _ filter: ViewFilter) -> Value? {
  var encoder = CBOREncoder()
  let isSeen = bytes.withUnsafeBytes { filter.filter(value: $0, into: &encoder) }
  require(isSeen == !encoder.bytes.isEmpty, "what is hidden leaves nothing behind")
  // Not with `?:`, which would turn nil into the value null.
  guard isSeen else { return Optional.none }
  return decodedValue(encoder.bytes)
}

private func requireDigest(of value: Value) {
  let bytes = encoded { value.encode(into: &$0) }
  let digest = bytes.withUnsafeBytes { try? Digest(ofValueForm: $0, seed: testSeed) }
  require(digest == value.digest(testSeed), "the bytes have the digest of the value")
}
