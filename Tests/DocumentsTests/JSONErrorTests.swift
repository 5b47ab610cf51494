import Documents
import Testing

@Suite struct JSONErrorTests {
  static let table: [(String, Int, String)] = [
    ("", 0, "line 1, column 1: expected a value, found the end of the text"),
    ("  ", 2, "line 1, column 3: expected a value, found the end of the text"),
    (
      "\u{feff}{}", 0,
      "line 1, column 1: JSON text must not begin with a byte order mark (EF BB BF)"
    ),
    (
      "{\n  \"name\": 1\n  \"b\": 2}", 16,
      "line 3, column 3: expected ',' or '}' after the value of \"name\", found '\"'"
    ),
    (
      "{\"é\": 1 x", 9,
      "line 1, column 9: expected ',' or '}' after the value of \"é\", found 'x'"
    ),
    ("{a: 1}", 1, "line 1, column 2: expected the name of a member in quotes or '}', found 'a'"),
    (
      "{\"a\": 1,}", 8,
      "line 1, column 9: expected the name of a member in quotes after ',', found '}'"
    ),
    ("{\"a\" 1}", 5, "line 1, column 6: expected ':' after the name \"a\", found '1'"),
    ("{\"a\": 1, \"a\": 2}", 9, "line 1, column 10: the object has a member \"a\" already"),
    ("[1,]", 3, "line 1, column 4: expected a value after ',', found ']'"),
    ("[1 2]", 3, "line 1, column 4: expected ',' or ']' after element 0 of the array, found '2'"),
    (
      "[1", 2,
      "line 1, column 3: expected ',' or ']' after element 0 of the array, found the end of the "
        + "text"
    ),
    ("[1]]", 3, "line 1, column 4: expected the end of the text, found ']'"),
    ("nul", 0, "line 1, column 1: expected null"),
    ("truth", 0, "line 1, column 1: expected true"),
    ("NaN", 0, "line 1, column 1: expected a value, found 'N'"),
    ("+1", 0, "line 1, column 1: expected a value, found '+'"),
    (".5", 0, "line 1, column 1: expected a value, found '.'"),
    ("'a'", 0, "line 1, column 1: expected a value, found '''"),
    ("/* */ 1", 0, "line 1, column 1: expected a value, found '/'"),
    ("01", 0, "line 1, column 1: a number must not begin with 0 and another digit"),
    ("-", 1, "line 1, column 2: expected a digit after '-', found the end of the text"),
    ("1.", 2, "line 1, column 3: expected a digit after '.', found the end of the text"),
    ("1e", 2, "line 1, column 3: expected a digit of the exponent, found the end of the text"),
    ("[1e+]", 4, "line 1, column 5: expected a digit of the exponent, found ']'"),
    ("1e400", 0, "line 1, column 1: 1e400 is too large for a 64-bit double"),
    (
      "-1e999999999999999999999", 0,
      "line 1, column 1: -1e999999999999999999999 is too large for a 64-bit double"
    ),
    (
      "[18446744073709551616]", 1,
      "line 1, column 2: the integer 18446744073709551616 does not fit 64 bits: write "
        + "18446744073709551616.0, a double, which may round it, or a string in quotes"
    ),
    (
      "-9223372036854775809", 0,
      "line 1, column 1: the integer -9223372036854775809 does not fit 64 bits: write "
        + "-9223372036854775809.0, a double, which may round it, or a string in quotes"
    ),
    (
      "1" + String(repeating: "0", count: 99), 0,
      "line 1, column 1: the integer 1\(String(repeating: "0", count: 59))… does not fit 64 bits: "
        + "write it with '.0' behind it, a double, which may round it, or a string in quotes"
    ),
    ("\"abc", 0, "line 1, column 1: the string that begins here has no closing quote"),
    (
      "\"a\nb\"", 2,
      "line 1, column 3: control character 0xa in a string; write it as \\u000a"
    ),
    (
      #""\x""#, 1,
      #"line 1, column 2: \ must be followed by one of " \ / b f n r t u, not 'x'"#
    ),
    (#""\"#, 1, "line 1, column 2: the text ends inside an escape"),
    (#""\u12g4""#, 1, #"line 1, column 2: \u must be followed by four hexadecimal digits"#),
    (
      #""\ud800""#, 1,
      #"line 1, column 2: \ud800 is half of a surrogate pair without the other"#
    ),
    (
      #""\udc00\ud800""#, 1,
      #"line 1, column 2: \udc00 is half of a surrogate pair without the other"#
    ),
    (
      #""\ud800\u0041""#, 1,
      #"line 1, column 2: \ud800 is half of a surrogate pair without the other"#
    ),
  ]

  @Test(arguments: table)
  func `an error says what is wrong, and where`(_ text: String, _ offset: Int, _ message: String) {
    let error = #expect(throws: JSONError.self) { try JSON.parse(text) }
    #expect(error?.description == message)
    #expect(error?.offset == offset)
  }

  @Test(arguments: [
    ([0x22, 0x61, 0xff, 0x22] as [UInt8], "line 1, column 3: byte 0xff is not UTF-8 here"),
    ([0x22, 0xc3, 0xa9, 0xed, 0xa0, 0x80, 0x22], "line 1, column 3: byte 0xed is not UTF-8 here"),
    ([0x22, 0xc0, 0x80, 0x22], "line 1, column 2: byte 0xc0 is not UTF-8 here"),
    ([0x22, 0x5c, 0x6e, 0xf8, 0x22], "line 1, column 4: byte 0xf8 is not UTF-8 here"),
    ([0xff], "line 1, column 1: expected a value, found byte 0xff"),
  ])
  func `the error for bytes that are not UTF-8 names them`(_ bytes: [UInt8], _ message: String) {
    let error = #expect(throws: JSONError.self) { try JSON.parse(bytes) }
    #expect(error?.description == message)
  }
}
