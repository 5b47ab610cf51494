// What swift-argument-parser asks of FoundationEssentials, so that Scripts/build --static needs not
// link it: 5.5 MB, a quarter of lockstepd, for the JSON of --experimental-dump-help, which manual pages
// are made from. Compiled as a module of that name; Scripts/test-packages compares its JSON with
// Foundation's.

/// An error that describes itself to users.
public protocol LocalizedError: Error {
  var errorDescription: String? { get }
}

extension LocalizedError {
  public var errorDescription: String? { nil }
}

/// Bytes.
public struct Data: Sendable {
  let bytes: [UInt8]
}

extension String {
  public enum Encoding: Sendable { case utf8 }

  public init?(data: Data, encoding: Encoding) { self.init(decoding: data.bytes, as: UTF8.self) }
}

/// Encodes values as JSON, whose keys are sorted and which is indented, whatever is asked.
public final class JSONEncoder {
  public struct OutputFormatting: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let prettyPrinted = Self(rawValue: 1)
    public static let sortedKeys = Self(rawValue: 2)
  }

  public var outputFormatting: OutputFormatting = []

  public init() {}

  public func encode<T: Encodable>(_ value: T) throws -> Data {
    let node = Node()
    try node.set(value, at: [])
    return Data(bytes: Array(node.text(indent: "").utf8))
  }
}

/// A JSON value that is being made.
private final class Node {
  enum Content {
    case text(String)
    case array([Node])
    case object([String: Node])
  }

  var content = Content.text("null")

  func set(_ value: some Encodable, at path: [any CodingKey]) throws {
    switch value {
    case let text as String: content = .text(quoted(text))
    case let flag as Bool: content = .text(flag ? "true" : "false")
    case let number as any BinaryInteger: content = .text("\(number)")
    default: try value.encode(to: NodeEncoder(node: self, codingPath: path))
    }
  }

  /// The node of a key, or the next of an array.
  func child(_ key: String? = nil) -> Node {
    let node = Node()
    switch (content, key) {
    case (.object(var members), let key?):
      members[key] = node
      content = .object(members)
    case (.array(let items), nil): content = .array(items + [node])
    default: preconditionFailure("one value is encoded in two ways")
    }
    return node
  }

  func text(indent: String) -> String {
    let deeper = indent + "  "
    switch content {
    case .text(let text): return text
    case .array(let items):
      return list("[", items.map { $0.text(indent: deeper) }, "]", indent: indent)
    case .object(let members):
      let lines = members.sorted { $0.key < $1.key }
        .map { "\(quoted($0.key)) : \($0.value.text(indent: deeper))" }
      return list("{", lines, "}", indent: indent)
    }
  }

  private func list(_ open: String, _ items: [String], _ close: String, indent: String) -> String {
    "\(open)\n" + items.map { "\(indent)  \($0)" }.joined(separator: ",\n") + "\n\(indent)\(close)"
  }
}

private func quoted(_ text: String) -> String {
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"", "\\", "/": result += "\\\(scalar)"
    case "\n": result += "\\n"
    case "\r": result += "\\r"
    case "\t": result += "\\t"
    case "\u{8}": result += "\\b"
    case "\u{c}": result += "\\f"
    case ..<" ":
      let digits = String(scalar.value, radix: 16)
      result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}

private struct NodeEncoder: Encoder {
  let node: Node
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if case .text = node.content { node.content = .object([:]) }
    return KeyedEncodingContainer(Members(node: node, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .text = node.content { node.content = .array([]) }
    return Items(node: node, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    Single(node: node, codingPath: codingPath)
  }
}

private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: Node
  let codingPath: [any CodingKey]

  mutating func encodeNil(forKey key: Key) { _ = node.child(key.stringValue) }

  mutating func encode(_ value: some Encodable, forKey key: Key) throws {
    try node.child(key.stringValue).set(value, at: codingPath + [key])
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    encoder(for: key.stringValue).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder(for: key.stringValue).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { encoder(for: "super") }
  mutating func superEncoder(forKey key: Key) -> any Encoder { encoder(for: key.stringValue) }

  private func encoder(for key: String) -> NodeEncoder {
    NodeEncoder(node: node.child(key), codingPath: codingPath)
  }
}

private struct Items: UnkeyedEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey]

  var count: Int {
    if case .array(let items) = node.content { items.count } else { 0 }
  }

  mutating func encodeNil() { _ = node.child() }

  mutating func encode(_ value: some Encodable) throws {
    try node.child().set(value, at: codingPath)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> {
    encoder().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    encoder().unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { encoder() }
  private func encoder() -> NodeEncoder { NodeEncoder(node: node.child(), codingPath: codingPath) }
}

private struct Single: SingleValueEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey]
  mutating func encodeNil() { node.content = .text("null") }
  mutating func encode(_ value: some Encodable) throws { try node.set(value, at: codingPath) }
}
