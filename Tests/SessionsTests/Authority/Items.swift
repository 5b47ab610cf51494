import Access
import CBOR
import Testing
import Values

// A second implementation of values, patches and views as `Protocols/wire.md` defines them: over
// any CBOR item, and directly from the patterns.

/// An error that the protocol names.
struct BrokenPatch: Error {}

/// The result of a patch; nil is absent. This is the pseudocode of wire.md, line by line.
func applied(_ patch: CBORItem, to value: CBORItem?) throws -> CBORItem? {
  switch patch {
  case .undefined: return nil
  case .array(let items) where items.count == 1: return items[0]
  case .array(let items) where items.count == 2:
    guard case .array(let splices) = items[0], case .map(let edits) = items[1],
      case .array(var elements)? = value
    else { throw BrokenPatch() }
    for place in stride(from: 0, to: splices.count, by: 3) {
      guard case .unsigned(let at) = splices[place],
        case .unsigned(let removed) = splices[place + 1],
        case .array(let inserted) = splices[place + 2], at + removed <= elements.count
      else { throw BrokenPatch() }
      elements.replaceSubrange(Int(at)..<Int(at + removed), with: inserted)
    }
    for edit in edits {
      guard case .unsigned(let index) = edit.key, index < elements.count,
        let new = try applied(edit.value, to: elements[Int(index)])
      else { throw BrokenPatch() }
      elements[Int(index)] = new
    }
    return .array(elements)
  case .array: throw BrokenPatch()
  case .map(let edits):
    guard case .map(var pairs)? = value else { throw BrokenPatch() }
    for edit in edits {
      let place = pairs.firstIndex { $0.key == edit.key }
      let new = try applied(edit.value, to: place.map { pairs[$0].value })
      switch (place, new) {
      case (let place?, let new?): pairs[place].value = new
      case (let place?, nil): pairs.remove(at: place)
      case (nil, let new?): pairs.append(.init(edit.key, new))
      case (nil, nil): throw BrokenPatch()
      }
    }
    return .map(pairs)
  default: return patch
  }
}

/// The part of a value at `path` that a view with these patterns shows.
func shown(
  _ value: CBORItem?, at path: Path, granting grants: [PathPattern], denying denials: [PathPattern]
) -> CBORItem? {
  guard let value else { return nil }
  if denials.contains(where: { $0.covers(path) }) { return nil }
  let isPermitted = grants.contains { $0.covers(path) }
  let isDeniedBelow = denials.contains { $0.leads(below: path) }
  if isPermitted && !isDeniedBelow { return value }
  let isGrantedBelow = grants.contains { grant in
    grant.leads(below: path) && !denials.contains { $0.covers(grant, behind: path) }
  }
  guard isPermitted || isGrantedBelow else { return nil }
  switch value {
  case .map(let pairs):
    return .map(
      pairs.compactMap { pair in
        let place = Path(path.keys + [pair.key.pathKey])
        return shown(pair.value, at: place, granting: grants, denying: denials)
          .map { .init(pair.key, $0) }
      })
  case .array: return nil
  default: return isPermitted ? value : nil
  }
}

extension PathPattern {
  /// Whether the pattern covers places below a path, and not the path itself.
  fileprivate func leads(below path: Path) -> Bool {
    steps.count > path.keys.count
      && PathPattern(Array(steps.prefix(path.keys.count))).covers(path)
  }

  /// Whether the pattern covers everything that another covers below a path.
  fileprivate func covers(_ other: PathPattern, behind path: Path) -> Bool {
    let theirs = path.keys.map(Step.key) + other.steps.dropFirst(path.keys.count)
    return steps.count <= theirs.count && zip(steps, theirs).allSatisfy { $0 == .any || $0 == $1 }
  }
}

extension CBORItem {
  var pathKey: PathKey {
    switch self {
    case .text(let text): .text(text)
    case .unsigned(let number): .integer(Int64(number))
    case .negative(let number): .integer(~Int64(number))
    default: preconditionFailure("Not a key: \(self).")
    }
  }

  var bytes: [UInt8] { encoded { encode(into: &$0) } }

  /// The same value with the entries of maps in the order of their keys' bytes.
  var sorted: CBORItem {
    switch self {
    case .array(let items): .array(items.map(\.sorted))
    case .map(let pairs):
      .map(
        pairs.map { (bytes: $0.key.bytes, pair: Pair($0.key, $0.value.sorted)) }
          .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.map(\.pair))
    default: self
    }
  }

  /// All texts in the item, keys and values.
  var texts: Set<String> {
    switch self {
    case .text(let text): [text]
    case .array(let items): items.reduce(into: []) { $0.formUnion($1.texts) }
    case .map(let pairs):
      pairs.reduce(into: []) { $0.formUnion($1.key.texts.union($1.value.texts)) }
    default: []
    }
  }
}

extension ViewFilter {
  /// The visible part of a value; nil when it is absent.
  func shown(_ value: CBORItem?) throws -> CBORItem? {
    var encoder = CBOREncoder()
    let bytes = value?.bytes ?? [0xf7]
    let isSeen = bytes.withUnsafeBytes { filter(value: $0, into: &encoder) }
    #expect(isSeen || encoder.bytes.isEmpty)
    return isSeen ? try CBORItem(encoder.bytes) : nil
  }

  /// The outcome and the filtered patch, appended to bytes that stay unchanged.
  func outcome(of patch: [UInt8]) -> (outcome: Outcome, patch: [UInt8]) {
    var encoder = CBOREncoder()
    encoder.bytes = [1, 2, 3]
    let outcome = patch.withUnsafeBytes { filter(patch: $0, into: &encoder) }
    #expect(encoder.bytes.prefix(3) == [1, 2, 3])
    #expect((outcome == .patch) == (encoder.bytes.count > 3))
    return (outcome, Array(encoder.bytes.dropFirst(3)))
  }
}

/// A pattern written as a person writes it.
func pattern(_ text: String) -> PathPattern {
  PathPattern(
    text.split(separator: "/").map { token in
      if token == "*" { return .any }
      return .key(Int64(token).map(PathKey.integer) ?? .text(String(token)))
    })
}

func patterns(_ texts: [String]) -> [PathPattern] { texts.map(pattern) }
