extension String {
  /// The beginning of a text that may be long, for a message.
  package var truncated: String { prefix(scalars: 60, ifOverBytes: 80) }
}

extension Value {
  /// A short description of the value for people. O(1).
  package var summary: String {
    switch self {
    case .null: "null"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .double(let value): "\(value)"
    case .text(let text): "\"\(text.truncated)\""
    case .bytes(let bytes): "\(bytes.count) bytes"
    case .array(let elements): "an array of \(elements.count)"
    case .object(let entries): "an object of \(entries.count)"
    }
  }
}
