import Documents
import FoundationEssentials
import Testing
import Values

@Suite struct JSONTests {
  static let values: [(String, Value)] = [
    ("null", Value.null), (" true ", true), ("false", false), ("0", 0), ("-0", 0), ("-12", -12),
    ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
    ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
    ("1.0", 1.0), ("-0.0", .double(-0.0)), ("1e2", 100.0), ("1E+2", 100.0), ("25e-1", 2.5),
    ("1.7976931348623157e308", .double(.greatestFiniteMagnitude)),
    ("5e-324", .double(.leastNonzeroMagnitude)),
    ("1e-400", 0.0), ("0.1", 0.1), ("123456789012345678901234567890.0", 1.2345678901234568e29),
    ("9007199254740993.0", 9007199254740992.0), ("1e23", 1e23),
    ("0.000000000000000000000000000001", 1e-30),
    (#""""#, ""), (#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{c}\n\r\t"),
    (#""\u0041\u00e9\u20AC\ud83d\ude00""#, "Aé€😀"), ("\"é😀\"", "é😀"), (#""\u0000""#, "\0"),
    ("[]", []), ("[ 1 , [ ] ]", [1, []]), ("{}", [:]),
    ("{\"a\" : {\"b\":[null]}}", ["a": ["b": [nil]]]),
    (#"{"é": 1, "e\u0301": 2}"#, ["é": 1, "e\u{301}": 2]),
  ]

  @Test(arguments: values)
  func `a text has its value`(_ text: String, _ value: Value) throws {
    #expect(try JSON.parse(text) == value)
    #expect(try json(text) == value)
  }

  @Test(arguments: 0..<40)
  func `a written value is read back unchanged`(seed: Int) throws {
    var random = SeededGenerator(seed)
    for _ in 0..<20 {
      let value = random.value(depth: 5)
      for pretty in [false, true] {
        for sorted in [false, true] {
          let text = JSON.text(value, pretty: pretty, sortedKeys: sorted)
          #expect(try JSON.parse(text, seed: testSeed, tagged: true) == value, "\(text)")
          _ = try JSON.parse(text)
        }
      }
    }
  }

  @Test func `doubles are written shortest and read back bit by bit`() throws {
    var random = SeededGenerator(3)
    for _ in 0..<20_000 {
      let double = Double(bitPattern: random.next())
      guard double.isFinite else { continue }
      let text = JSON.text(.double(double))
      #expect(try JSON.parse(text) == .double(double), "\(text)")
      // Short decimals take the fast way.
      let short = "\(random.below(1_000_000)).\(random.below(1000))e\(random.below(40) - 20)"
      #expect(try JSON.parse(short) == .double(Double(short) ?? .nan), "\(short)")
    }
  }

  @Test func `there is a pretty form for people and a compact form for programs`() throws {
    let value = try json(#"{"b": [1, {}, []], "a": {"é": "\n\u0001"}}"#)
    #expect(
      JSON.text(value, sortedKeys: true) == #"{"a":{"é":"\n\u0001"},"b":[1,{},[]]}"#)
    #expect(
      JSON.text(value, pretty: true, sortedKeys: true) == """
        {
          "a": {
            "é": "\\n\\u0001"
          },
          "b": [
            1,
            {},
            []
          ]
        }
        """)
  }

  @Test func `a value that JSON cannot express is tagged`() throws {
    let value: Value = ["b": .bytes([1, 2, 255]), "n": .double(.nan), "i": .double(-.infinity)]
    let text = JSON.text(value, sortedKeys: true)
    #expect(
      text == #"{"b":{"$bytes":"AQL/"},"i":{"$double":"-Infinity"},"n":{"$double":"NaN"}}"#)
    #expect(try JSON.parse(text, tagged: true) == value)
    #expect(try JSON.parse(text) != value)
    // A tag that is not canonical stays an object.
    for other in [
      #"{"$bytes":"AQ"}"#, #"{"$bytes":"AR=="}"#, #"{"$double":"1"}"#,
      #"{"$bytes":"AA=="  ,"x":1}"#,
    ] {
      guard case .object = try JSON.parse(other, tagged: true) else {
        Issue.record("\(other) is an object")
        continue
      }
    }
  }

  @Test func `base64 is that of RFC 4648`() throws {
    let vectors = ["": "", "f": "Zg==", "fo": "Zm8=", "foo": "Zm9v", "foobar": "Zm9vYmFy"]
    for (plain, text) in vectors {
      let value = Value.bytes(Array(plain.utf8))
      #expect(JSON.text(value) == #"{"$bytes":"\#(text)"}"#)
      #expect(try JSON.parse(JSON.text(value), tagged: true) == value)
    }
  }

  @Test func `arrays and objects nest to the limit and no deeper`() throws {
    let deep = String(repeating: "[", count: 128) + String(repeating: "]", count: 128)
    #expect(throws: Never.self) { try JSON.parse(deep) }
    let error = #expect(throws: JSONError.self) { try JSON.parse("[\(deep)]") }
    #expect(
      error?.description
        == "line 1, column 129: nested deeper than 128 levels; a document takes 100, of which an "
        + "object counts one and an array two")
    #expect(throws: JSONError.self) { try JSON.parse(String(repeating: "[", count: 1_000_000)) }
    #expect(throws: JSONError.self) { try JSON.parse("[[]]", depth: 1) }
  }

  @Test func `random bytes and changed texts never crash`() {
    var random = SeededGenerator(11)
    let alphabet = Array("{}[]\",:\\u0019-+.eEtrfalsn \n\u{7f}é".utf8)
    for _ in 0..<20_000 {
      var bytes: [UInt8] = []
      for _ in 0..<random.below(24) { bytes.append(alphabet[random.below(alphabet.count)]) }
      _ = try? JSON.parse(bytes)
    }
    for _ in 0..<300 {
      var bytes = Array(JSON.text(random.value(depth: 4)).utf8)
      for _ in 0..<30 where !bytes.isEmpty {
        let kept = bytes
        bytes[random.below(bytes.count)] = UInt8.random(in: 0...255, using: &random)
        if (try? JSON.parse(bytes)) == nil { bytes = kept }
        _ = try? JSON.parse(Array(bytes[..<random.below(bytes.count)]))
      }
    }
  }

  static let isoCodes: [String] = {
    let folder = "/usr/share/iso-codes/json"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".json") }.sorted().map { "\(folder)/\($0)" }
  }()

  @Test(.enabled(if: !isoCodes.isEmpty), arguments: isoCodes)
  func `real files read as FoundationEssentials reads them`(_ path: String) throws {
    let data = try Data(contentsOf: URL(filePath: path))
    let value = try JSON.parse(Array(data), seed: testSeed)
    #expect(try JSONDecoder().decode(AnyJSON.self, from: data).value == value)
    for pretty in [false, true] {
      var bytes: [UInt8] = []
      JSON.write(value, into: &bytes, pretty: pretty)
      #expect(try JSON.parse(bytes, seed: testSeed) == value)
      // Foundation takes seconds for the large ones.
      if bytes.count > 100_000 { continue }
      #expect(try JSONDecoder().decode(AnyJSON.self, from: Data(bytes)).value == value)
    }
  }
}

/// Any JSON, as Foundation's decoder sees it.
private struct AnyJSON: Decodable {
  var value: Value

  init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: Name.self) {
      var entries = TrieMap<String, Value>(seed: testSeed)
      for key in container.allKeys {
        let member = try container.decode(AnyJSON.self, forKey: key)
        entries.updateValue(member.value, forKey: key.stringValue)
      }
      value = .object(entries)
    } else if var container = try? decoder.unkeyedContainer() {
      var elements: [Value] = []
      while !container.isAtEnd { elements.append(try container.decode(AnyJSON.self).value) }
      value = .array(TreeArray(elements))
    } else {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        value = .null
      } else if let flag = try? container.decode(Bool.self) {
        value = .bool(flag)
      } else if let number = try? container.decode(Int64.self) {
        value = .integer(number)
      } else if let number = try? container.decode(Double.self) {
        value = .double(number)
      } else {
        value = .text(try container.decode(String.self))
      }
    }
  }

  struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
