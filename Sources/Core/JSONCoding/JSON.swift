public import Values

/// JSON text (RFC 8259) to values and back.
///
/// A value that JSON has no form for travels as an object with one member: bytes as
/// `{"$bytes": "aGk="}` (base64, RFC 4648, section 4), and doubles that are not finite as
/// `{"$double": "NaN"}`, `"Infinity"` or `"-Infinity"`. `write` always writes them so; `parse`
/// reads them back only when `tagged` is true, because a document may have members of those names.
public enum JSON {
  /// The default limit on the nesting of arrays and objects, which is that of a CBOR decoder.
  public static let defaultDepth = 128

  /// The limit of documents, unless their daemon has another: most texts are to become part of one.
  package static let documentDepth = 100
  /// How a document counts its levels, as the end of a sentence.
  package static let countingLevels = "of which an object counts one and an array two"

  /// The value of a JSON text in UTF-8. One pass; objects hash with `seed`.
  ///
  /// Strict and total. Integers from -2^63 to 2^64 - 1 are exact and others an error; a number with
  /// a fraction or an exponent is a double, correctly rounded, and an error when it is too large.
  /// Also refused: a duplicate member, a surrogate without its partner, a byte order mark.
  public static func parse(
    _ bytes: UnsafeRawBufferPointer, seed: HashSeed = .unseeded, depth: Int = defaultDepth,
    tagged: Bool = false
  ) throws(JSONError) -> Value {
    var parser = JSONParser(bytes, seed: seed, depth: depth, isTagged: tagged)
    return try parser.document()
  }

  public static func parse(
    _ bytes: [UInt8], seed: HashSeed = .unseeded, depth: Int = defaultDepth, tagged: Bool = false
  ) throws(JSONError) -> Value {
    let result: Result<Value, JSONError> = bytes.withUnsafeBytes { buffer in
      do throws(JSONError) {
        return .success(try parse(buffer, seed: seed, depth: depth, tagged: tagged))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  public static func parse(
    _ text: String, seed: HashSeed = .unseeded, depth: Int = defaultDepth, tagged: Bool = false
  ) throws(JSONError) -> Value {
    try parse(Array(text.utf8), seed: seed, depth: depth, tagged: tagged)
  }

  /// Append the value as JSON text: on one line, or `pretty` with two spaces a level. Members come
  /// in the order of the object, or, with `sortedKeys`, in that of their bytes. Doubles are the
  /// shortest text that reads back as the same, and always have a point or an exponent.
  public static func write(
    _ value: Value, into bytes: inout [UInt8], pretty: Bool = false, sortedKeys: Bool = false
  ) {
    var writer = JSONWriter(bytes: [], isPretty: pretty, sortsKeys: sortedKeys)
    swap(&writer.bytes, &bytes)
    writer.write(value, indent: 0)
    swap(&writer.bytes, &bytes)
  }

  /// The value as JSON text.
  public static func text(
    _ value: Value, pretty: Bool = false, sortedKeys: Bool = false
  ) -> String {
    var bytes: [UInt8] = []
    write(value, into: &bytes, pretty: pretty, sortedKeys: sortedKeys)
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Why a text is not JSON, and where.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as the end of a sentence: `expected ',' or '}' after the value of "name"`.
  public var message: String
  /// Bytes from the start of the text.
  public var offset: Int
  /// From 1.
  public var line: Int
  /// From 1, in code points.
  public var column: Int

  public init(_ message: String, offset: Int, line: Int, column: Int) {
    self.message = message
    self.offset = offset
    self.line = line
    self.column = column
  }

  public var description: String { "line \(line), column \(column): \(message)" }
}
