public import Values

/// Replaces what others may not see by something else, in values and in paths, so that what is given to
/// them behaves as before and tells nothing.
///
/// Texts, bytes and keys become others that are as long, and numbers become others: equal ones equal
/// ones, different ones different ones, in the order in which they are met. A boolean becomes false. What
/// stays is which values are null, how many members and elements there are, the length of texts, the
/// keys that a pattern names, and those that may be indices: up to four digits, and `-`.
public struct Redaction: Sendable {
  private let root: ViewNode
  private var texts: [String: String] = [:]
  private var blobs: [[UInt8]: [UInt8]] = [:]
  private var numbers: [String: Int64] = [:]
  private var last: UInt64 = 0
  /// The number of values that were replaced, each time that they were met.
  public private(set) var count = 0

  /// A redaction of what these patterns cover.
  public init(of patterns: [PathPattern]) {
    root = View(granting: [.whole], denying: patterns).root
  }

  /// A value at a path, with what must not be seen replaced. O(its size).
  public mutating func value(_ value: Value, at path: Path) -> Value {
    replace(value, root.node(at: path))
  }

  /// A path without keys that must not be seen. O(its keys).
  public mutating func path(_ path: Path) -> Path {
    var node = root
    return Path(
      path.keys.map { key in
        guard case .text(let text) = key else { return key }
        let parent = node
        if case .part(let part) = node { node = part.child(key) }
        return .text(self.key(text, in: parent, node))
      })
  }

  private mutating func replace(_ value: Value, _ node: ViewNode) -> Value {
    switch (node, value) {
    case (.everything, _): return value
    case (_, .object(let members)):
      var replaced = TrieMap<String, Value>()
      for (key, value) in members {
        let child = child(.text(key), of: node)
        replaced.updateValue(replace(value, child), forKey: self.key(key, in: node, child))
      }
      return .object(replaced)
    case (_, .array(let elements)):
      return .array(
        TreeArray(
          elements.enumerated().map { index, element in
            replace(element, child(.text("\(index)"), of: node))
          }))
    case (.part(let part), _) where part.isPermitted: return value
    case (.part, _), (.nothing, _): return replaced(value)
    }
  }

  private func child(_ key: PathKey, of node: ViewNode) -> ViewNode {
    if case .part(let part) = node { part.child(key) } else { node }
  }

  /// The key of a child. One that the policy names is no secret.
  private mutating func key(_ key: String, in parent: ViewNode, _ child: ViewNode) -> String {
    guard child == .nothing else { return key }
    if case .part(let part) = parent, part.entries[.text(key)] != nil { return key }
    let mayBeIndex = key == "-" || key.utf8.count <= 4 && key.utf8.allSatisfy { 48...57 ~= $0 }
    return mayBeIndex ? key : text(key)
  }

  private mutating func replaced(_ value: Value) -> Value {
    count += 1
    switch value {
    case .null, .array, .object:
      count -= 1
      return value
    case .bool: return .bool(false)
    case .integer(let number): return .integer(self.number("\(number)"))
    case .unsigned(let number): return .integer(self.number("\(number)"))
    case .double(let number): return .double(Double(self.number("\(number)")) + 0.5)
    case .text(let text): return .text(self.text(text))
    case .bytes(let bytes):
      if let known = blobs[bytes] { return .bytes(known) }
      let other = Array(next(bytes.count).utf8)
      blobs[bytes] = other
      return .bytes(other)
    }
  }

  private mutating func number(_ text: String) -> Int64 {
    if let known = numbers[text] { return known }
    let other = Int64(numbers.count + 1)
    numbers[text] = other
    return other
  }

  private mutating func text(_ text: String) -> String {
    if text.isEmpty { return text }
    if let known = texts[text] { return known }
    let other = next(text.utf8.count)
    texts[text] = other
    return other
  }

  /// The next text of so many letters, or of more if there are no others.
  private mutating func next(_ length: Int) -> String {
    last += 1
    var letters: [UInt8] = []
    var rest = last
    while rest > 0 || letters.count < length {
      letters.append(UInt8(ascii: "a") + UInt8(rest % 26))
      rest /= 26
    }
    return String(decoding: letters.reversed(), as: UTF8.self)
  }
}
