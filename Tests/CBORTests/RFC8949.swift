import CBOR
import Testing

/// A row of RFC 8949, appendix A.
struct Vector: Sendable, CustomTestStringConvertible {
  var hex: String
  /// In diagnostic notation: strings of indefinite length joined, bignums as their tag, numbers as
  /// Swift shortens them (the RFC has 0.00006103515625).
  var meaning: String
  /// Whether our encoder makes the same bytes: shortest heads, definite lengths.
  var isPreferred: Bool

  init(_ hex: String, _ meaning: String, isPreferred: Bool = true) {
    self.hex = hex
    self.meaning = meaning
    self.isPreferred = isPreferred
  }

  var testDescription: String { "\(hex) \(meaning)" }
}

private let oneTo25 = "[\((1...25).map(String.init).joined(separator: ", "))]"

/// Every row of appendix A, in its order.
let appendixA: [Vector] = [
  Vector("00", "0"),
  Vector("01", "1"),
  Vector("0a", "10"),
  Vector("17", "23"),
  Vector("1818", "24"),
  Vector("1819", "25"),
  Vector("1864", "100"),
  Vector("1903e8", "1000"),
  Vector("1a000f4240", "1000000"),
  Vector("1b000000e8d4a51000", "1000000000000"),
  Vector("1bffffffffffffffff", "18446744073709551615"),
  Vector("c249010000000000000000", "2(h'010000000000000000')"),
  Vector("3bffffffffffffffff", "-18446744073709551616"),
  Vector("c349010000000000000000", "3(h'010000000000000000')"),
  Vector("20", "-1"),
  Vector("29", "-10"),
  Vector("3863", "-100"),
  Vector("3903e7", "-1000"),
  Vector("f90000", "0.0"),
  Vector("f98000", "-0.0"),
  Vector("f93c00", "1.0"),
  Vector("fb3ff199999999999a", "1.1"),
  Vector("f93e00", "1.5"),
  Vector("f97bff", "65504.0"),
  Vector("fa47c35000", "100000.0"),
  Vector("fa7f7fffff", "3.4028234663852886e+38"),
  Vector("fb7e37e43c8800759c", "1.0e+300"),
  Vector("f90001", "5.960464477539063e-8"),
  Vector("f90400", "6.103515625e-5"),
  Vector("f9c400", "-4.0"),
  Vector("fbc010666666666666", "-4.1"),
  Vector("f97c00", "Infinity"),
  Vector("f97e00", "NaN"),
  Vector("f9fc00", "-Infinity"),
  Vector("fa7f800000", "Infinity", isPreferred: false),
  Vector("fa7fc00000", "NaN", isPreferred: false),
  Vector("faff800000", "-Infinity", isPreferred: false),
  Vector("fb7ff0000000000000", "Infinity", isPreferred: false),
  Vector("fb7ff8000000000000", "NaN", isPreferred: false),
  Vector("fbfff0000000000000", "-Infinity", isPreferred: false),
  Vector("f4", "false"),
  Vector("f5", "true"),
  Vector("f6", "null"),
  Vector("f7", "undefined"),
  Vector("f0", "simple(16)"),
  Vector("f8ff", "simple(255)"),
  Vector("c074323031332d30332d32315432303a30343a30305a", #"0("2013-03-21T20:04:00Z")"#),
  Vector("c11a514b67b0", "1(1363896240)"),
  Vector("c1fb41d452d9ec200000", "1(1363896240.5)"),
  Vector("d74401020304", "23(h'01020304')"),
  Vector("d818456449455446", "24(h'6449455446')"),
  Vector("d82076687474703a2f2f7777772e6578616d706c652e636f6d", #"32("http://www.example.com")"#),
  Vector("40", "h''"),
  Vector("4401020304", "h'01020304'"),
  Vector("60", #""""#),
  Vector("6161", #""a""#),
  Vector("6449455446", #""IETF""#),
  Vector("62225c", #""\"\\""#),
  Vector("62c3bc", #""ü""#),
  Vector("63e6b0b4", #""水""#),
  Vector("64f0908591", #""𐅑""#),
  Vector("80", "[]"),
  Vector("83010203", "[1, 2, 3]"),
  Vector("8301820203820405", "[1, [2, 3], [4, 5]]"),
  Vector("98190102030405060708090a0b0c0d0e0f101112131415161718181819", oneTo25),
  Vector("a0", "{}"),
  Vector("a201020304", "{1: 2, 3: 4}"),
  Vector("a26161016162820203", #"{"a": 1, "b": [2, 3]}"#),
  Vector("826161a161626163", #"["a", {"b": "c"}]"#),
  Vector(
    "a56161614161626142616361436164614461656145",
    #"{"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"}"#),
  Vector("5f42010243030405ff", "h'0102030405'", isPreferred: false),
  Vector("7f657374726561646d696e67ff", #""streaming""#, isPreferred: false),
  Vector("9fff", "[]", isPreferred: false),
  Vector("9f018202039f0405ffff", "[1, [2, 3], [4, 5]]", isPreferred: false),
  Vector("9f01820203820405ff", "[1, [2, 3], [4, 5]]", isPreferred: false),
  Vector("83018202039f0405ff", "[1, [2, 3], [4, 5]]", isPreferred: false),
  Vector("83019f0203ff820405", "[1, [2, 3], [4, 5]]", isPreferred: false),
  Vector("9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", oneTo25, isPreferred: false),
  Vector("bf61610161629f0203ffff", #"{"a": 1, "b": [2, 3]}"#, isPreferred: false),
  Vector("826161bf61626163ff", #"["a", {"b": "c"}]"#, isPreferred: false),
  Vector("bf6346756ef563416d7421ff", #"{"Fun": true, "Amt": -2}"#, isPreferred: false),
]

/// Bytes that are not CBOR, and the error they give.
struct NotWellFormed: Sendable, CustomTestStringConvertible {
  var hex: String
  var error: CBORError

  init(_ hex: String, _ kind: CBORError.Kind, at offset: Int) {
    self.hex = hex
    error = CBORError(kind, at: offset)
  }

  var testDescription: String { "\(hex): \(error)" }
}

/// Every example of appendix F.1, in its order, and a break as the content of a tag.
let appendixF1: [NotWellFormed] = [
  // End of input in a head.
  NotWellFormed("18", .truncated, at: 0),
  NotWellFormed("19", .truncated, at: 0),
  NotWellFormed("1a", .truncated, at: 0),
  NotWellFormed("1b", .truncated, at: 0),
  NotWellFormed("1901", .truncated, at: 0),
  NotWellFormed("1a0102", .truncated, at: 0),
  NotWellFormed("1b01020304050607", .truncated, at: 0),
  NotWellFormed("38", .truncated, at: 0),
  NotWellFormed("58", .truncated, at: 0),
  NotWellFormed("78", .truncated, at: 0),
  NotWellFormed("98", .truncated, at: 0),
  NotWellFormed("9a01ff00", .truncated, at: 0),
  NotWellFormed("b8", .truncated, at: 0),
  NotWellFormed("d8", .truncated, at: 0),
  NotWellFormed("f8", .truncated, at: 0),
  NotWellFormed("f900", .truncated, at: 0),
  NotWellFormed("fa0000", .truncated, at: 0),
  NotWellFormed("fb000000", .truncated, at: 0),
  // Definite-length strings with short data.
  NotWellFormed("41", .lengthBeyondInput(1), at: 0),
  NotWellFormed("61", .lengthBeyondInput(1), at: 0),
  NotWellFormed("5affffffff00", .lengthBeyondInput(0xffff_ffff), at: 0),
  NotWellFormed("5bffffffffffffffff010203", .lengthBeyondInput(.max), at: 0),
  NotWellFormed("7affffffff00", .lengthBeyondInput(0xffff_ffff), at: 0),
  NotWellFormed("7b7fffffffffffffff010203", .lengthBeyondInput(0x7fff_ffff_ffff_ffff), at: 0),
  // Definite-length maps and arrays not closed with enough items.
  NotWellFormed("81", .lengthBeyondInput(1), at: 0),
  NotWellFormed("818181818181818181", .lengthBeyondInput(1), at: 8),
  NotWellFormed("8200", .lengthBeyondInput(2), at: 0),
  NotWellFormed("a1", .lengthBeyondInput(1), at: 0),
  NotWellFormed("a20102", .lengthBeyondInput(2), at: 0),
  NotWellFormed("a100", .lengthBeyondInput(1), at: 0),
  NotWellFormed("a2000000", .lengthBeyondInput(2), at: 0),
  // Tag number not followed by tag content.
  NotWellFormed("c0", .truncated, at: 1),
  // Indefinite-length strings not closed by a break.
  NotWellFormed("5f4100", .truncated, at: 3),
  NotWellFormed("7f6100", .truncated, at: 3),
  // Indefinite-length maps and arrays not closed by a break.
  NotWellFormed("9f", .truncated, at: 1),
  NotWellFormed("9f0102", .truncated, at: 3),
  NotWellFormed("bf", .truncated, at: 1),
  NotWellFormed("bf01020102", .truncated, at: 5),
  NotWellFormed("819f", .truncated, at: 2),
  NotWellFormed("9f8000", .truncated, at: 3),
  NotWellFormed("9f9f9f9f9fffffffff", .truncated, at: 9),
  NotWellFormed("9f819f819f9fffffff", .truncated, at: 9),
  // Reserved additional information.
  NotWellFormed("1c", .malformed, at: 0),
  NotWellFormed("1d", .malformed, at: 0),
  NotWellFormed("1e", .malformed, at: 0),
  NotWellFormed("3c", .malformed, at: 0),
  NotWellFormed("3d", .malformed, at: 0),
  NotWellFormed("3e", .malformed, at: 0),
  NotWellFormed("5c", .malformed, at: 0),
  NotWellFormed("5d", .malformed, at: 0),
  NotWellFormed("5e", .malformed, at: 0),
  NotWellFormed("7c", .malformed, at: 0),
  NotWellFormed("7d", .malformed, at: 0),
  NotWellFormed("7e", .malformed, at: 0),
  NotWellFormed("9c", .malformed, at: 0),
  NotWellFormed("9d", .malformed, at: 0),
  NotWellFormed("9e", .malformed, at: 0),
  NotWellFormed("bc", .malformed, at: 0),
  NotWellFormed("bd", .malformed, at: 0),
  NotWellFormed("be", .malformed, at: 0),
  NotWellFormed("dc", .malformed, at: 0),
  NotWellFormed("dd", .malformed, at: 0),
  NotWellFormed("de", .malformed, at: 0),
  NotWellFormed("fc", .malformed, at: 0),
  NotWellFormed("fd", .malformed, at: 0),
  NotWellFormed("fe", .malformed, at: 0),
  // Reserved two-byte encodings of simple values.
  NotWellFormed("f800", .malformed, at: 0),
  NotWellFormed("f801", .malformed, at: 0),
  NotWellFormed("f818", .malformed, at: 0),
  NotWellFormed("f81f", .malformed, at: 0),
  // Indefinite-length string chunks not of the correct type.
  NotWellFormed("5f00ff", .malformed, at: 1),
  NotWellFormed("5f21ff", .malformed, at: 1),
  NotWellFormed("5f6100ff", .malformed, at: 1),
  NotWellFormed("5f80ff", .malformed, at: 1),
  NotWellFormed("5fa0ff", .malformed, at: 1),
  NotWellFormed("5fc000ff", .malformed, at: 1),
  NotWellFormed("5fe0ff", .malformed, at: 1),
  NotWellFormed("7f4100ff", .malformed, at: 1),
  // Indefinite-length string chunks not of definite length.
  NotWellFormed("5f5f4100ffff", .malformed, at: 1),
  NotWellFormed("7f7f6100ffff", .malformed, at: 1),
  // A break on its own.
  NotWellFormed("ff", .unexpectedBreak, at: 0),
  // A break in a definite-length array or map or a tag.
  NotWellFormed("81ff", .unexpectedBreak, at: 1),
  NotWellFormed("8200ff", .unexpectedBreak, at: 2),
  NotWellFormed("a1ff", .lengthBeyondInput(1), at: 0),
  NotWellFormed("a1ff00", .unexpectedBreak, at: 1),
  NotWellFormed("a100ff", .unexpectedBreak, at: 2),
  NotWellFormed("a20000ff", .lengthBeyondInput(2), at: 0),
  NotWellFormed("9f81ff", .unexpectedBreak, at: 2),
  NotWellFormed("9f829f819f9fffffffff", .unexpectedBreak, at: 9),
  NotWellFormed("c0ff", .unexpectedBreak, at: 1),
  // A break in a value position of an indefinite-length map.
  NotWellFormed("bf00ff", .unexpectedBreak, at: 2),
  NotWellFormed("bf000000ff", .unexpectedBreak, at: 4),
  // Major types 0, 1 and 6 with additional information 31.
  NotWellFormed("1f", .malformed, at: 0),
  NotWellFormed("3f", .malformed, at: 0),
  NotWellFormed("df", .malformed, at: 0),
]
