import Lockstep
import Values

/// The first place at which a value differs from the value that a test expects: in an array by
/// index, in an object by name.
struct Difference {
  /// The keys from the place that differs up to the place of the test.
  private var keysUpwards: [PathKey]
  /// Nil if no value is expected.
  private let expected: Value?
  /// Nil if no value is found.
  private let found: Value?

  /// Nil if the values are equal by RFC 6902, section 4.6. O(the size of `expected`).
  init?(expected: Value, found: Value) {
    switch (expected, found) {
    case (.array(let expected), .array(let found)): self.init(expected, found)
    case (.object(let expected), .object(let found)): self.init(expected, found)
    default:
      if found.equals(expected) { return nil }
      self.init(at: [], expected: expected, found: found)
    }
  }

  private init(at keys: [PathKey], expected: Value?, found: Value?) {
    (keysUpwards, self.expected, self.found) = (keys, expected, found)
  }

  private init?(_ expected: TreeArray<Value>, _ found: TreeArray<Value>) {
    for (index, (expected, found)) in zip(expected, found).enumerated() {
      guard var difference = Difference(expected: expected, found: found) else { continue }
      difference.keysUpwards.append(.integer(Int64(index)))
      self = difference
      return
    }
    if expected.count == found.count { return nil }
    let end = min(expected.count, found.count)
    // A bare nil would be the value null.
    self.init(
      at: [.integer(Int64(end))], expected: end < expected.count ? .some(expected[end]) : .none,
      found: end < found.count ? .some(found[end]) : .none)
  }

  private init?(_ expected: TrieMap<String, Value>, _ found: TrieMap<String, Value>) {
    var first: (name: String, difference: Difference)?
    for (name, value) in expected {
      if let first, !String.precedes(name, first.name) { continue }
      guard let other = found[name] else {
        first = (name, Difference(at: [.text(name)], expected: value, found: nil))
        continue
      }
      guard var difference = Difference(expected: value, found: other) else { continue }
      difference.keysUpwards.append(.text(name))
      first = (name, difference)
    }
    if let first {
      self = first.difference
      return
    }
    // Among the members found, at most `expected.count` come before one that is not expected.
    guard found.count > expected.count,
      let (name, value) = found.first(where: { expected[$0.0] == nil })
    else { return nil }
    self.init(at: [.text(name)], expected: nil, found: value)
  }

  /// The difference in words, for a test of a path.
  func sentence(testing path: Path) -> String {
    if keysUpwards.isEmpty { return contents }
    let place = Path(path.keys + keysUpwards.reversed())
    return "the first difference is at \(place.place): \(contents)"
  }

  private var contents: String {
    let (expected, found) = (expected?.summary ?? "nothing", found?.summary ?? "nothing")
    guard expected == found else { return "expected \(expected), found \(found)" }
    // Both begin alike, or have equal sizes.
    return "expected \(expected), found another that differs \(placeInside)"
  }

  private var placeInside: String {
    switch (expected, found) {
    case (.text(let expected)?, .text(let found)?):
      "from character \(Self.commonCount(expected.unicodeScalars, found.unicodeScalars)) on"
    case (.bytes(let expected)?, .bytes(let found)?):
      "from byte \(Self.commonCount(expected, found)) on"
    default: "in a way that its description does not show"
    }
  }

  private static func commonCount<S: Sequence>(_ first: S, _ second: S) -> Int
  where S.Element: Equatable {
    zip(first, second).prefix { $0 == $1 }.count
  }
}
