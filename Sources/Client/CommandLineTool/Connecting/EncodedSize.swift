import CBOR
import Values

/// The size of values on the wire, in bytes.
enum EncodedSize {
  static func of(_ value: Value) -> Int {
    switch value {
    case .null, .bool: 1
    case .integer(let number):
      CBORDecoder.headLength(UInt64(bitPattern: number < 0 ? ~number : number))
    case .unsigned: 9
    case .double: 9
    case .text(let text): of(text)
    case .bytes(let bytes): CBORDecoder.headLength(UInt64(bytes.count)) + bytes.count
    case .array(let elements):
      elements.reduce(CBORDecoder.headLength(UInt64(elements.count))) { $0 + of($1) }
    case .object(let entries):
      entries.reduce(CBORDecoder.headLength(UInt64(entries.count))) {
        $0 + of($1.key) + of($1.value)
      }
    }
  }

  static func of(_ text: String) -> Int {
    CBORDecoder.headLength(UInt64(text.utf8.count)) + text.utf8.count
  }
}
