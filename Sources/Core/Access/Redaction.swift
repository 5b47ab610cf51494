public import Values

/// Replaces what others may not see by something else, in values and in paths of documents, so that what
/// is given to them behaves as before and tells nothing.
///
/// Texts, bytes and keys become others that are as long, and numbers become others: equal ones equal
/// ones, different ones different ones, numbered in the order in which they are met. A boolean becomes
/// false. What stays is which values are null, how many members and elements there are, the length of
/// texts, the keys that a pattern names, and those that may be indices: up to four digits, and `-`.
///
/// As with `ViewFilter`, an array is left as it is only where all of it may be seen: paths do not lead
/// through it. A path that may lead through one is therefore taken with the document to which it belongs.
public struct Redaction: Sendable {
  private let root: ViewNode
  private var texts: [[UInt8]: String] = [:]
  private var blobs: [[UInt8]: [UInt8]] = [:]
  private var numbers: [String: Int64] = [:]
  private var last: UInt64 = 0
  /// The number of values that were replaced, each time that they were met.
  public private(set) var count = 0

  /// A redaction of what these patterns cover.
  public init(of patterns: [PathPattern]) {
    root = View(granting: [.whole], denying: patterns).root
  }

  /// A value that is, or is to be, at a path of a document, with what must not be seen replaced. O(its
  /// size, and the path).
  public mutating func value(_ value: Value, at path: Path, in document: Value) -> Value {
    var place = Place(node: root, value: document)
    for key in path.keys { place = place.child(key) }
    return replace(value, place.node)
  }

  /// A path of a document without keys that must not be seen. O(its keys).
  public mutating func path(_ path: Path, in document: Value) -> Path {
    var place = Place(node: root, value: document)
    return Path(
      path.keys.map { key in
        let parent = place
        place = parent.child(key)
        return self.key(key, in: parent.node, place.node)
      })
  }

  /// A text that is neither path nor number, and may have anything in it.
  public mutating func text(_ text: String) -> String {
    if text.isEmpty { return text }
    let bytes = Array(text.utf8)
    if let known = texts[bytes] { return known }
    let other = next(bytes.count)
    texts[bytes] = other
    return other
  }

  /// A place of a document.
  private struct Place {
    var node: ViewNode
    /// The value there; nil if there is none, or it is not known.
    var value: Value?

    func child(_ key: PathKey) -> Place {
      guard case .part(let part) = node else { return Place(node: node) }
      switch value {
      case .object(let members)?:
        guard case .text(let name) = key else { return Place(node: .nothing) }
        return Place(node: part.child(key), value: members[name])
      case nil where key.isLikeIndex, .array?: return Place(node: .nothing)
      default: return Place(node: part.child(key))
      }
    }
  }

  private mutating func replace(_ value: Value, _ node: ViewNode) -> Value {
    switch (node, value) {
    case (.everything, _): return value
    case (_, .object(let members)):
      var replaced = TrieMap<String, Value>()
      for (name, value) in members {
        var child = node
        if case .part(let part) = node { child = part.child(.text(name)) }
        replaced.updateValue(
          replace(value, child), forKey: self.name(name, in: node, child))
      }
      return .object(replaced)
    case (_, .array(let elements)):
      return .array(TreeArray(elements.map { replace($0, .nothing) }))
    case (.part(let part), _) where part.isPermitted: return value
    case (.part, _), (.nothing, _): return replaced(value)
    }
  }

  private mutating func key(_ key: PathKey, in parent: ViewNode, _ child: ViewNode) -> PathKey {
    switch key {
    case .text(let name): return .text(self.name(name, in: parent, child))
    case .integer(let number):
      return child != .nothing || key.mayBeIndex ? key : .integer(self.number("\(number)"))
    }
  }

  /// The key of a child. One that the policy names is no secret.
  private mutating func name(_ name: String, in parent: ViewNode, _ child: ViewNode) -> String {
    guard child == .nothing, !PathKey.text(name).mayBeIndex else { return name }
    if case .part(let part) = parent, part.entries[.text(name)] != nil { return name }
    return text(name)
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

extension PathKey {
  /// Whether it can be the index of an element.
  fileprivate var isLikeIndex: Bool {
    switch self {
    case .text(let text): text == "-" || !text.isEmpty && text.utf8.allSatisfy { 48...57 ~= $0 }
    case .integer: true
    }
  }

  /// Whether it can be one, and is too short to be anything else that matters.
  fileprivate var mayBeIndex: Bool {
    switch self {
    case .text(let text): isLikeIndex && text.utf8.count <= 4
    case .integer(let number): 0..<10_000 ~= number
    }
  }
}
